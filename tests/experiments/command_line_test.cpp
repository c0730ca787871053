// The manners of the command line, by running it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/experiments/process.h"

namespace ring::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& message) {
  const ProcessResult result = run_ringscope(arguments);
  EXPECT_EQ(result.code, 2) << message;
  EXPECT_THAT(result.err, StartsWith("error: "));
  EXPECT_THAT(result.err, HasSubstr(message));
  EXPECT_THAT(result.out, IsEmpty());
}

TEST(CommandLine, HelpNamesEveryVerbAndGoesToStdout) {
  const ProcessResult result = run_ringscope({"--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  for (const char* verb : {"env", "strategies"}) EXPECT_THAT(result.out, HasSubstr(verb));
}

TEST(CommandLine, VersionIsOneLine) {
  const ProcessResult result = run_ringscope({"--version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, ::testing::MatchesRegex("ringscope [0-9.]+\n"));
}

TEST(CommandLine, RefusesWhatItDoesNotKnow) {
  expect_usage_error({}, "no verb given");
  expect_usage_error({"enw"}, "did you mean env?");
  expect_usage_error({"env", "--jsno"}, "did you mean --json?");
  expect_usage_error({"env", "extra"}, "does not take the argument extra");
  expect_usage_error({"--verbose", "env"}, "options come after the verb");
}

TEST(CommandLine, AnErrorWithJsonIsADocumentToo) {
  const ProcessResult result = run_ringscope({"env", "--json", "--nonsense"});
  EXPECT_EQ(result.code, 2);
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document.at("schema"), "ringscope-error");
  EXPECT_EQ(document.at("exit_code"), 2);
}

TEST(CommandLine, AFullDiskIsAnError) {
  ProcessOptions options;
  options.stdout_path = "/dev/full";
  const ProcessResult result = run_ringscope({"env"}, options);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
}

TEST(CommandLine, ColoursOnlyTerminalsAndHonoursNoColor) {
  ProcessOptions options;
  options.environment = {"TERM=xterm"};
  options.is_err_terminal = true;
  EXPECT_THAT(run_ringscope({"enw"}, options).err, HasSubstr("\x1b["));
  options.environment.emplace_back("NO_COLOR=1");
  EXPECT_THAT(run_ringscope({"enw"}, options).err, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(run_ringscope({"enw"}, {{"TERM=xterm"}, "", false, {}}).err, Not(HasSubstr("\x1b[")));
}

TEST(Env, JsonIsOneDocumentWithTheFacts) {
  const ProcessResult result = run_ringscope({"env", "--json"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  const auto document = nlohmann::json::parse(result.out);
  EXPECT_EQ(document.at("schema"), "ringscope-env");
  EXPECT_GE(document.at("host").at("cores").get<int>(), 1);
  EXPECT_GT(document.at("host").at("memory_bytes").get<int64_t>(), 0);
}

TEST(Env, SaysWhereTheProfileIs) {
  const TemporaryFolder folder;
  const ProcessOptions options{{"XDG_CACHE_HOME=" + folder.path()}, "", false, {}};
  const auto document = nlohmann::json::parse(run_ringscope({"env", "--json"}, options).out);
  EXPECT_EQ(document.at("machine_profile"), folder.file("ringscope/machine.json"));
  EXPECT_EQ(document.at("is_calibrated"), false);
}

}  // namespace
}  // namespace ring::testing
