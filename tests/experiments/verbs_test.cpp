// Every verb by running it: what it prints, writes and returns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/experiments/fixture.h"

namespace ring::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Simulate, TheSameInputsGiveTheSameBytes) {
  const TemporaryFolder folder;
  const auto arguments = small("simulate", {"--machine", write_test_machine(folder), "--json"});
  const ProcessResult first = run_ringscope(arguments);
  const ProcessResult second = run_ringscope(arguments);
  EXPECT_EQ(first.code, 0);
  EXPECT_THAT(first.out, Not(IsEmpty()));
  EXPECT_EQ(first.out, second.out);
}

TEST(Simulate, TheIntervalHoldsTheTimeAndComesFromNoise) {
  const TemporaryFolder folder;
  const auto document = run_json_verb(small("simulate", {"--machine", write_test_machine(folder)}));
  const auto& prediction = document.at("prediction");
  const auto& interval = prediction.at("interval");
  const auto time = prediction.at("makespan_ps").get<int64_t>();
  EXPECT_LE(interval.at("low_ps").get<int64_t>(), time);
  EXPECT_GE(interval.at("high_ps").get<int64_t>(), time);
  EXPECT_LT(interval.at("low_ps").get<int64_t>(), interval.at("high_ps").get<int64_t>());
}

TEST(Simulate, AProgramThatCannotFinishIsRefusedWithItsCycle) {
  const TemporaryFolder folder;
  const ProcessResult result = run_ringscope({"simulate", "--seq", "96", "--ranks", "3", "--depth",
                                              "1", "--machine", write_test_machine(folder)});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("deadlock"));
  EXPECT_THAT(result.err, HasSubstr("waits for"));
  EXPECT_THAT(result.out, IsEmpty());
}

TEST(Simulate, ARingTooLargeToKeepIsStreamedFoldedAndSaidToBe) {
  const auto document =
      run_json_verb({"simulate", "--machine", "hgx-h100:nodes=512", "--ranks", "4096", "--seq",
                     "16Mi", "--mask", "full", "--partition", "contiguous", "--dtype", "bf16"});
  const auto& prediction = document.at("prediction");
  EXPECT_EQ(prediction.at("metrics").at("ranks").size(), 4096u);
  EXPECT_THAT(prediction.at("notes").dump(), HasSubstr("8 ranks stand for all 4096"));
  EXPECT_FALSE(document.contains("blame"));
  // What every rank computes takes no longer than the ring.
  EXPECT_GE(prediction.at("makespan_ps"), prediction.at("metrics").at("compute_ps"));
}

TEST(Simulate, ATimelineOfARingTooLargeToKeepIsRefused) {
  const TemporaryFolder folder;
  const ProcessResult result = run_ringscope(
      {"simulate", "--machine", "hgx-h100:nodes=512", "--ranks", "4096", "--seq", "16Mi", "--mask",
       "full", "--partition", "contiguous", "-o", folder.file("run.json")});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("no timeline to write"));
}

TEST(Simulate, CtrlCEndsItAtOnceSinceThereIsNothingToKeep) {
  // Many seconds of work, and a signal when stderr was looked at for the third time (every 0.2 s).
  int looks = 0;
  ProcessOptions options;
  options.interrupt_when = [&looks](const std::string&) { return ++looks == 3; };
  const ProcessResult result =
      run_ringscope({"simulate", "--seq", "256Ki", "--ranks", "1000", "--block", "64"}, options);
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.out, IsEmpty());
}

TEST(Simulate, BlameAddsUpToTheTime) {
  const TemporaryFolder folder;
  const auto document = run_json_verb(small("simulate", {"--machine", write_test_machine(folder)}));
  int64_t sum = 0;
  for (const auto& item : document.at("blame").at("by_kind_ps").items()) {
    sum += item.value().get<int64_t>();
  }
  EXPECT_EQ(sum, document.at("prediction").at("makespan_ps").get<int64_t>());
}

TEST(Simulate, WithoutAProfileItSaysThatItGuesses) {
  const TemporaryFolder folder;
  const ProcessOptions options{{"XDG_CACHE_HOME=" + folder.path()}, "", false, {}};
  const ProcessResult result = run_ringscope(small("simulate"), options);
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("UNCALIBRATED"));
}

TEST(Simulate, FindsTheProfileOfThisUserAndSaysWhich) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.file("ringscope"));
  std::filesystem::rename(write_test_machine(folder), folder.file("ringscope/machine.json"));
  const ProcessOptions options{{"XDG_CACHE_HOME=" + folder.path()}, "", false, {}};
  const ProcessResult result = run_ringscope(small("simulate"), options);
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr(folder.file("ringscope/machine.json")));
  EXPECT_THAT(result.out, HasSubstr("test machine"));
}

TEST(Simulate, ABlockBeyondTheCalibratedRangeIsMarked) {
  const TemporaryFolder folder;
  const std::string machine = write_test_machine(folder);
  const auto inside = run_json_verb(
      {"simulate", "--machine", machine, "--heads", "2", "--seq", "512", "--block", "64"});
  EXPECT_EQ(inside.at("prediction").at("is_extrapolated"), false);
  const auto outside = run_json_verb(
      {"simulate", "--machine", machine, "--heads", "2", "--seq", "512", "--block", "32"});
  EXPECT_EQ(outside.at("prediction").at("is_extrapolated"), true);
}

TEST(Simulate, WritesRunFileTraceAndPicture) {
  const TemporaryFolder folder;
  const ProcessResult result = run_ringscope(
      small("simulate", {"--machine", write_test_machine(folder), "-o", folder.file("run.json"),
                         "--trace", folder.file("trace.json"), "--svg", folder.file("p.svg")}));
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(nlohmann::json::parse(read_text(folder.file("run.json"))).at("schema"),
            "ringscope-run");
  EXPECT_FALSE(
      nlohmann::json::parse(read_text(folder.file("trace.json"))).at("traceEvents").empty());
  EXPECT_THAT(read_text(folder.file("p.svg")), HasSubstr("</svg>"));
}

TEST(PrintConfig, GivesBackAFileThatReproducesTheCommand) {
  const TemporaryFolder folder;
  const std::string machine = write_test_machine(folder);
  const auto arguments = small("simulate", {"--machine", machine, "--mask", "window:50", "--dtype",
                                            "bf16", "--partition", "striped:8", "--depth", "3"});
  auto printing = arguments;
  printing.emplace_back("--print-config");
  const std::string scenario = folder.write("scenario.toml", run_ringscope(printing).out);
  const auto direct = run_json_verb(arguments);
  const auto reproduced = run_json_verb({"simulate", "--scenario", scenario});
  EXPECT_EQ(direct, reproduced);
}

TEST(PrintConfig, WholeAndShortPathsOfTheMachineMeanTheSameRun) {
  const TemporaryFolder folder;
  const std::filesystem::path machine = write_test_machine(folder);
  const std::string name = machine.filename().string();
  ProcessOptions here;
  here.folder = folder.path();
  const auto simulated = [&here](const std::string& path) {
    return run_ringscope(small("simulate", {"--machine", path, "--json"}), here);
  };
  const ProcessResult whole = simulated(machine.string());
  EXPECT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(nlohmann::json::parse(whole.out).at("machine").at("source"), name);
  EXPECT_EQ(whole.out, simulated(name).out);
  EXPECT_EQ(whole.out, simulated("./" + name).out);
}

TEST(PrintConfig, IsRefusedForAProgramFile) {
  const TemporaryFolder folder;
  const std::string program = folder.write("p.txt", "ranks 1\nlanes 1\nr0 L0 compute ps=5\n");
  const ProcessResult result = run_ringscope({"simulate", "--program", program, "--print-config"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("no --program"));
}

TEST(Trace, OfARingProgramIsNotReadAsOneOfKernels) {
  const TemporaryFolder folder;
  const std::string trace = folder.file("trace.json");
  ASSERT_EQ(run_ringscope(small("simulate", {"--trace", trace})).code, 0);
  const ProcessResult result = run_ringscope({"why", trace});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("take the run file"));
}

TEST(PrintConfig, OptionsWinOverTheScenario) {
  const TemporaryFolder folder;
  const std::string scenario =
      folder.write("s.toml", "[problem]\nheads = 4\nseq = 256\n[tuning]\nranks = 4\nblock = 32\n");
  const auto document = run_json_verb({"simulate", "--scenario", scenario, "--ranks", "2"});
  EXPECT_EQ(document.at("tuning").at("ranks"), 2);
  EXPECT_EQ(document.at("tuning").at("block_tokens"), 32);
  EXPECT_EQ(document.at("problem").at("seq_len"), 256);
}

TEST(Run, ComparesWithThePredictionAndChecksTheResult) {
  const TemporaryFolder folder;
  const auto document =
      run_json_verb(small("run", {"--machine", write_test_machine(folder), "--repeat", "3"}));
  EXPECT_EQ(document.at("partial"), false);
  EXPECT_EQ(document.at("steps_ps").size(), 3u);
  EXPECT_EQ(document.at("verification").at("is_right"), true);
  EXPECT_GT(document.at("verification").at("rows").get<int>(), 3);
  EXPECT_TRUE(document.contains("comparison"));
}

TEST(Run, LengthsOfOneAndMoreRanksThanTokens) {
  for (const char* seq : {"1", "2", "5"}) {
    const auto document = run_json_verb(
        {"run", "--heads", "2", "--head-dim", "16", "--seq", seq, "--ranks", "7", "--repeat", "1"});
    EXPECT_EQ(document.at("verification").at("is_right"), true) << seq;
  }
}

TEST(Run, WithoutAGpuCudaIsUnavailable) {
  if (std::filesystem::exists("/proc/driver/nvidia")) GTEST_SKIP() << "there is a GPU";
  const ProcessResult result = run_ringscope(small("run", {"--device", "cuda"}));
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr("no NVIDIA driver"));
}

TEST(Run, InterruptedWritesAPartialRunFile) {
  const TemporaryFolder folder;
  ProcessOptions options;
  options.is_err_terminal = true;
  options.interrupt_when = [](const std::string& err) {
    return err.find(" of 1000") != std::string::npos;
  };
  const ProcessResult result =
      run_ringscope({"run", "--heads", "4", "--seq", "1024", "--block", "128", "--repeat", "1000",
                     "-o", folder.file("run.json"), "--json"},
                    options);
  EXPECT_EQ(result.code, 130);
  EXPECT_EQ(nlohmann::json::parse(result.out).at("partial"), true);
  EXPECT_TRUE(std::filesystem::exists(folder.file("run.json")));
}

TEST(Compare, MeasuredAndPredictedOfOneFile) {
  const TemporaryFolder folder;
  const std::string file = folder.file("run.json");
  ASSERT_EQ(run_ringscope(small("run", {"--machine", write_test_machine(folder), "-o", file})).code,
            0);
  const auto document = run_json_verb({"compare", file});
  EXPECT_EQ(document.at("first"), "measured");
  EXPECT_GT(document.at("comparison").at("measured_ps").get<int64_t>(), 0);
  EXPECT_EQ(document.at("comparison").at("only_measured"), 0);
}

TEST(Compare, RefusesRunsOfDifferentPrograms) {
  const TemporaryFolder folder;
  const std::string machine = write_test_machine(folder);
  const std::string a = folder.file("a.json"), b = folder.file("b.json");
  run_ringscope({"simulate", "--machine", machine, "--ranks", "2", "-o", a});
  run_ringscope({"simulate", "--machine", machine, "--ranks", "4", "-o", b});
  EXPECT_EQ(run_ringscope({"compare", a, b}).code, 2);
  EXPECT_EQ(run_ringscope({"compare", a}).code, 2);
}

TEST(Trace, OfARunFile) {
  const TemporaryFolder folder;
  run_ringscope({"simulate", "--machine", write_test_machine(folder), "-o", folder.file("a.json")});
  const ProcessResult result =
      run_ringscope({"trace", folder.file("a.json"), "-o", folder.file("trace.json")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(
      nlohmann::json::parse(read_text(folder.file("trace.json"))).at("traceEvents").empty());
  EXPECT_EQ(run_ringscope({"trace", folder.file("a.json")}).code, 2);
}

TEST(Check, NamesTheCycleOfRanksAndOps) {
  const TemporaryFolder folder;
  std::string text = "ranks 3\nlanes 1\n";
  for (int rank = 0; rank < 3; ++rank) {
    const std::string r = std::to_string(rank);
    text += "r" + r + " L0 send to=" + std::to_string((rank + 1) % 3) + " msg=0 bytes=64\n";
    text += "r" + r + " L0 receive from=" + std::to_string((rank + 2) % 3) +
            " msg=0 bytes=64 buffer=0\n";
  }
  const ProcessResult result = run_ringscope({"check", folder.write("ring.txt", text)});
  EXPECT_EQ(result.code, 2);
  for (const char* part : {"deadlock", "r0:0 send", "r1:0 send", "r2:0 send", "waits for"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(Check, DepthOneOnARingOfThreeIsADeadlock) {
  EXPECT_EQ(run_ringscope(small("check", {"--depth", "1"})).code, 2);
  EXPECT_EQ(run_ringscope(small("check", {"--depth", "2"})).code, 0);
  const ProcessResult run = run_ringscope(small("run", {"--depth", "1"}));
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("deadlock"));
}

TEST(Check, ABadProgramNamesFileAndLine) {
  const TemporaryFolder folder;
  const std::string file = folder.write("bad.txt", "ranks 2\nlanes 1\nr0 L0 sned to=1\n");
  const ProcessResult result = run_ringscope({"check", file});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr(file));
  EXPECT_THAT(result.err, HasSubstr("3"));
}

TEST(Demo, PredictsAndRunsWhatWasNotCalibrated) {
  const TemporaryFolder folder;
  const auto document = run_json_verb({"demo", "--small", "--repeat", "1", "--machine",
                                       write_test_machine(folder), "-o", folder.file("demo")});
  const auto& summary = document.at("summary");
  const auto count = summary.at("configurations").get<size_t>();
  EXPECT_GE(count, 8u);
  EXPECT_EQ(document.at("rows").size(), count);
  EXPECT_EQ(summary.at("wrong_results"), 0);
  EXPECT_GE(summary.at("worst_abs_error").get<double>(),
            summary.at("median_abs_error").get<double>());
  for (const auto& row : document.at("rows")) {
    const std::string file = folder.file("demo/" + row.at("name").get<std::string>() + ".json");
    EXPECT_TRUE(std::filesystem::exists(file)) << file;
  }
  EXPECT_TRUE(std::filesystem::exists(folder.file("demo/trace.json.gz")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("demo/timeline.svg")));
}

}  // namespace
}  // namespace ring::testing
