// Bad input is refused with a message that helps, exit code 2, and nothing on stdout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/experiments/fixture.h"

namespace ring::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct BadCase {
  std::vector<std::string> arguments;
  std::string message;
};

void PrintTo(const BadCase& bad, std::ostream* out) {
  for (const std::string& word : bad.arguments) *out << word << ' ';
}

class BadInput : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadInput, IsRefused) {
  const ProcessResult result = run_ringscope(GetParam().arguments);
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_THAT(result.out, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    CommandLine, BadInput,
    ::testing::Values(BadCase{{"simulate", "--sequence", "5"}, "has no option --sequence"},
                      BadCase{{"simulate", "--haeds", "5"}, "did you mean --heads?"},
                      BadCase{{"simulate", "--seq"}, "--seq needs a value"},
                      BadCase{{"simulate", "--seq", "1", "--seq", "2"}, "more than once"},
                      BadCase{{"simulate", "--seq", "0"}, "--seq is 0"},
                      BadCase{{"simulate", "--seq", "-5"}, "--seq is -5"},
                      BadCase{{"simulate", "--seq", "4.5"}, "--seq"},
                      BadCase{{"simulate", "--seq", "64Q"}, "--seq"},
                      BadCase{{"simulate", "--seq", ""}, "--seq"},
                      BadCase{{"simulate", "--seq", "99999999999999999999"}, "64 bits"},
                      BadCase{{"simulate", "--heads", "0"}, "--heads"},
                      BadCase{{"simulate", "--heads", "7", "--kv-heads", "2"}, "does not divide"},
                      BadCase{{"simulate", "--head-dim", "257"}, "256"},
                      BadCase{{"simulate", "--block", "0"}, "--block"},
                      BadCase{{"simulate", "--depth", "0"}, "--depth"},
                      BadCase{{"simulate", "--ranks", "0"}, "--ranks"},
                      BadCase{{"simulate", "--lanes", "-1"}, "--lanes"},
                      BadCase{{"simulate", "--dtype", "fp8"}, "fp8"},
                      BadCase{{"simulate", "--mask", "casual"}, "causal"},
                      BadCase{{"simulate", "--mask", "window:0"}, "window"},
                      BadCase{{"simulate", "--partition", "zigzg"}, "zigzag"},
                      BadCase{{"simulate", "--strategy", "pass-vk"}, "pass-kv"},
                      BadCase{{"simulate", "--layer", "3"}, "--layer needs --model"},
                      BadCase{{"simulate", "--seq", "1T"}, "0 to 2147483648"},
                      BadCase{{"simulate", "--seq", "2Gi", "--block", "1"}, "larger blocks"},
                      BadCase{{"simulate", "--seq", "2Gi", "--mask", "chunked:1"}, "larger chunks"},
                      BadCase{{"simulate", "--ranks", "1M"}, "at most 131072"},
                      BadCase{{"simulate", "--mask", "full", "--partition", "contiguous", "--ranks",
                               "64Ki", "--seq", "64Ki"},
                              "more than"},
                      BadCase{{"simulate", "--machine", "dgx-a10"}, "did you mean dgx-a100?"},
                      BadCase{{"simulate", "--machine", "h100"}, "did you mean h100-500w-32-ib,"},
                      BadCase{{"simulate", "--topology", "dgx-1v"}, "give --machine dgx-1v"},
                      BadCase{{"simulate", "--head-dim", "512"}, "choose with --layer"},
                      BadCase{{"simulate", "--machine", ""}, "--machine is empty"},
                      BadCase{{"simulate", "--machine", "dgx-a100"},
                              "it states bf16, fp16: choose with --dtype"},
                      BadCase{{"simulate", "--model", "llama-3-8B"}, "did you mean llama-3-8b?"},
                      BadCase{{"simulate", "--topology", "rack-1"}, "are for --machine"},
                      BadCase{{"simulate", "--strategy", "ulysses", "--depth", "3"}, "no use for"},
                      BadCase{{"check", "--strategy", "local", "--lanes", "2"}, "no use for"},
                      BadCase{{"simulate", "--machine", "dgx-a100", "--noise-seed", "1"}, "noise"},
                      BadCase{{"compare-strategies", "--strategy", "ulysses"}, "no option"},
                      BadCase{{"calibrate", "--budget", "45"}, "--budget"},
                      BadCase{{"demo", "--budget", "0s"}, "more than 0"},
                      BadCase{{"demo", "--budget", "1s", "--machine", "dgx-a100"}, "--budget"},
                      BadCase{{"calibrate", "--budget", "0s"}, "--budget"},
                      BadCase{{"calibrate", "--seq", "4096"}, "calibrate has no option --seq"},
                      BadCase{{"run", "--device", "tpu"}, "cpu or cuda"},
                      BadCase{{"trace"}, "RUN is missing\n hint: see ringscope trace --help"},
                      BadCase{{"help"}, "ringscope --help"},
                      BadCase{{"validate", "--file", "foo"}, "usp-yunchang"},
                      BadCase{{"compare", "a", "b", "c"}, "does not take the argument c"}));

TEST(BadInputOf, CoresThatAreNotThere) {
  for (const std::string verb : {"run", "calibrate"}) {
    const ProcessResult result = run_ringscope({verb, "--cores", "60000"});
    EXPECT_EQ(result.code, 4);
    EXPECT_THAT(result.err, HasSubstr("--cores is 60000, but this process may use"));
  }
}

TEST(BadInputOf, CompareStrategiesWhereNoneCanBePredicted) {
  const ProcessResult result =
      run_ringscope({"compare-strategies", "--machine", "dgx-a100", "--dtype", "fp32"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("does not state what attention costs in fp32"));
}

TEST(BadInputOf, TwoOutputsOfOneName) {
  const TemporaryFolder folder;
  const std::string file = folder.file("out");
  const ProcessResult result = run_ringscope(small("simulate", {"-o", file, "--svg", file}));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("two of --output, --trace and --svg are"));
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(BadInputOf, APlaceThatCannotBeWrittenBeforeAnythingIsMeasured) {
  const TemporaryFolder folder;
  const std::string under_a_file = folder.write("file", "") + "/machine.json";
  for (const std::string& place : {folder.path(), under_a_file}) {
    const ProcessResult result = run_ringscope({"calibrate", "--budget", "600s", "-o", place});
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.err, HasSubstr("folder"));
  }
}

TEST(BadFile, BinaryProgramsAreNotPouredOutOverTheTerminal) {
  const TemporaryFolder folder;
  const std::string file = folder.write("binary", std::string(100'000, '\x1b'));
  const ProcessResult result = run_ringscope({"simulate", "--program", file});
  EXPECT_EQ(result.code, 2);
  EXPECT_LT(result.err.size(), 1000u);
  EXPECT_EQ(result.err.find('\x1b'), std::string::npos);
}

TEST(BadFile, EveryReaderNamesTheFile) {
  const TemporaryFolder folder;
  const std::string missing = folder.file("missing");
  const std::string directory = folder.path();
  const std::string truncated = folder.write("cut.json", "{\"schema\": \"ringscope-run\", \"sch");
  const std::string foreign = folder.write("foreign.json", "{\"traceEvents\": []}");
  const std::string empty = folder.write("empty", "");
  const std::string binary = folder.write("binary", std::string("\x7f"
                                                                "ELF\0\1\2",
                                                                7));
  for (const std::string& file : {missing, directory, truncated, foreign, empty, binary}) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"compare", file},
                                                    {"trace", file, "-o", folder.file("out")},
                                                    {"simulate", "--machine", file},
                                                    {"simulate", "--model", file},
                                                    {"simulate", "--scenario", file},
                                                    {"check", file}}) {
      const bool is_empty_scenario = file == empty && command[1] == "--scenario";
      if (is_empty_scenario) continue;  // All keys may be left out.
      const ProcessResult result = run_ringscope(command);
      EXPECT_EQ(result.code, 2) << command[0] << ' ' << file << '\n' << result.err;
      EXPECT_THAT(result.err, HasSubstr(file)) << command[0];
      EXPECT_THAT(result.out, IsEmpty());
    }
  }
}

TEST(BadFile, AScenarioWithAnUnknownKeyNamesLineAndNearest) {
  const TemporaryFolder folder;
  const std::string file = folder.write("s.toml", "[problem]\nhaeds = 4\n");
  const ProcessResult result = run_ringscope({"simulate", "--scenario", file});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr(file + ":2"));
  EXPECT_THAT(result.err, HasSubstr("heads"));
}

TEST(BadFile, ATruncatedMachineIsNoMachine) {
  const TemporaryFolder folder;
  const std::string text = read_text(write_test_machine(folder));
  const std::string file = folder.write("cut.json", text.substr(0, text.size() / 2));
  const ProcessResult result = run_ringscope({"simulate", "--machine", file});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr(file));
}

TEST(FullDisk, NothingOldIsLost) {
  const TemporaryFolder folder;
  const std::string machine = write_test_machine(folder);
  const ProcessResult result = run_ringscope({"simulate", "--machine", machine, "-o", "/dev/full"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("/dev/full"));
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
}

TEST(FullDisk, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const ProcessResult result = run_ringscope(
      {"simulate", "--machine", write_test_machine(folder), "-o", file + "/run.json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr(file));
}

TEST(FullDisk, AFolderOfPicturesThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const ProcessResult result = run_ringscope(
      {"strategies", "--machine", write_test_machine(folder), "--pictures", file + "/pictures"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot make the folder"));
}

TEST(FullDisk, ARunFindsOutBeforeItMeasuresThatItsFileHasNoPlace) {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const ProcessResult result = run_ringscope(small("run", {"-o", file + "/run.json"}));
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "") << "nothing was measured";
}

TEST(FullDisk, ATraceDoesNotReplaceItsRun) {
  const TemporaryFolder folder;
  const std::string run = folder.file("run.json");
  ASSERT_EQ(
      run_ringscope(small("simulate", {"--machine", write_test_machine(folder), "-o", run})).code,
      0);
  const std::string before = read_text(run);
  EXPECT_EQ(run_ringscope({"trace", run, "-o", run}).code, 2);
  EXPECT_EQ(read_text(run), before);
}

TEST(Interrupt, MidCalibrationKeepsTheOldProfile) {
  const TemporaryFolder folder;
  const std::string profile = folder.write("machine.json", "precious");
  ProcessOptions options;
  options.is_err_terminal = true;
  options.interrupt_when = [](const std::string& err) {
    return err.find("calibrate  [") != std::string::npos;
  };
  const ProcessResult result =
      run_ringscope({"calibrate", "--budget", "60s", "-o", profile, "--json"}, options);
  EXPECT_EQ(result.code, 130);
  EXPECT_EQ(nlohmann::json::parse(result.out).at("partial"), true);
  EXPECT_EQ(read_text(profile), "precious");
  EXPECT_TRUE(std::filesystem::exists(profile + ".partial"));
}

}  // namespace
}  // namespace ring::testing
