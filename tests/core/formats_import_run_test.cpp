// Imported traces as runs, link logs as curves, Chakra traces of runs: nothing is lost on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "core/formats/chakra.h"
#include "core/formats/chrome_trace.h"
#include "core/formats/import/link_curve.h"
#include "core/formats/import/trace_run.h"
#include "core/program_text.h"
#include "core/run_graph.h"
#include "core/strategy.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::HasSubstr;

std::string event(const std::string& category, const std::string& name, int begin, int duration,
                  int stream) {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","ts":)" +
         std::to_string(begin) + R"(,"dur":)" + std::to_string(duration) +
         R"(,"args":{"device":0,"stream":)" + std::to_string(stream) + "}}";
}

KernelTrace trace_of(const std::string& text) {
  std::istringstream input(text);
  return parse_kernel_trace(input, "t.json");
}

std::string random_trace(int count) {
  const std::vector<std::string> names{"gemm", "flash_fwd", "ncclDevKernel_SendRecv",
                                       "a \\\"b\\\""};
  std::string text = R"({"traceEvents":[)";
  for (int i = 0; i < count; ++i) {
    const bool is_copy = *rc::gen::inRange(0, 5) == 0;
    const int name = *rc::gen::inRange(0, 4);
    text += (i == 0 ? "" : ",") + event(is_copy ? "gpu_memcpy" : "kernel",
                                        names[static_cast<size_t>(name)], *rc::gen::inRange(0, 300),
                                        *rc::gen::inRange(0, 40), *rc::gen::inRange(0, 4) * 7);
  }
  return text + "]}";
}

/// Name, begin, end and kind of every kernel and copy.
std::multiset<std::tuple<std::string, int64_t, int64_t, bool, bool>> facts(
    const KernelTrace& trace) {
  std::multiset<std::tuple<std::string, int64_t, int64_t, bool, bool>> facts;
  for (const KernelSlice& slice : trace.slices) {
    facts.emplace(trace.names[static_cast<size_t>(slice.name)], slice.begin_ns, slice.end_ns,
                  slice.is_copy, slice.is_communication);
  }
  return facts;
}

/// Trace -> run file -> text -> run file -> Chrome trace -> trace.
RC_GTEST_PROP(TraceRun, ExportedAndReadAgainEverySliceIsThere, ()) {
  const KernelTrace trace = trace_of(random_trace(*rc::gen::inRange(1, 60)));
  const RunFile run = run_of_traces({trace}, {"t.json"});
  const std::string text = run_json(run);
  const RunFile read = parse_run(text, "r.json");
  RC_ASSERT(run_json(read) == text);
  const TraceInput input[] = {{&*read.measured, nullptr, &read.op_names}};
  RC_ASSERT(facts(trace_of(chrome_trace(input))) == facts(trace));
}

/// The program says only what can have been: every op began after what it waits for ended.
RC_GTEST_PROP(TraceRun, NothingWaitsForWhatCameLater, ()) {
  const RunFile run = run_of_traces({trace_of(random_trace(*rc::gen::inRange(1, 60)))}, {"t"});
  const RingProgram program = parse_program(run.program_text);
  const RunGraph graph(program, *run.measured);
  for (int64_t node = 0; node < graph.nodes(); ++node) {
    RC_ASSERT(graph.ran(node));
    for (const Predecessor& before : graph.predecessors(node)) {
      RC_ASSERT(graph.slice(before.node).end_ps <= graph.slice(node).start_ps);
    }
  }
}

TEST(TraceRun, RanksAreThoseThatTheTracesState) {
  const auto traced = [](int rank, const std::string& name) {
    return trace_of(R"({"distributedInfo":{"rank":)" + std::to_string(rank) +
                    R"(,"world_size":2},"traceEvents":[)" + event("kernel", name, 5, 2, 7) + "]}");
  };
  const RunFile run = run_of_traces({traced(1, "one"), traced(0, "zero")}, {"b", "a"});
  EXPECT_EQ(run.measured->ranks, 2);
  EXPECT_EQ(run.op_names.of({0, 0}), "zero");
  EXPECT_EQ(run.op_names.of({1, 0}), "one");
  EXPECT_TRUE(is_imported(run));
  EXPECT_EQ(run.measured->makespan_ps(), 2'000'000) << "each rank begins at 0";
}

TEST(TraceRun, ATraceOfTheHostAloneIsRefused) {
  EXPECT_THAT(error_of([] { run_of_traces({trace_of(R"({"traceEvents":[]})")}, {"t"}); }),
              HasSubstr("no kernel"));
}

NcclTestsLog gather_log() {
  std::string text = "# Collective test starting: all_gather_perf\n# nThread 1\n#  Using devices\n";
  for (int r = 0; r < 4; ++r) {
    text += "#  Rank  " + std::to_string(r) + " Group  0 Pid 1 on box device  " +
            std::to_string(r) + " [0x0" + std::to_string(r) + "] Some GPU\n";
  }
  text +=
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong\n";
  // A hop of n bytes takes 10 us + n / 100 GB/s, and there are three of a quarter of the size.
  for (const int64_t size : {int64_t{1} << 20, int64_t{1} << 24, int64_t{1} << 28}) {
    const double us = 3 * (10 + static_cast<double>(size) / 4 / 100e3);
    const double algbw = static_cast<double>(size) / us / 1e3;
    char row[200];
    std::snprintf(row, sizeof row, " %lld %lld float none -1 %.4f %.4f %.4f 0 %.4f %.4f %.4f 0\n",
                  static_cast<long long>(size), static_cast<long long>(size / 16), us, algbw,
                  algbw * 3 / 4, us, algbw, algbw * 3 / 4);
    text += row;
  }
  return parse_nccl_tests(text, "log");
}

TEST(LinkCurve, AHopOfAnAllGatherIsAStepOfIt) {
  const LinkCurves curves = link_curves(gather_log());
  ASSERT_EQ(curves.curves.size(), 1U);
  const LinkCurve& curve = curves.curves[0];
  EXPECT_NEAR(curve.start_s, 10e-6, 0.01e-6);
  EXPECT_NEAR(curve.bytes_per_s, 100e9, 0.1e9);
  EXPECT_EQ(curve.points[0].bytes, (int64_t{1} << 20) / 4);
  EXPECT_FALSE(curve.crosses_hosts);
  EXPECT_EQ(best_curve(curves), &curve);
  EXPECT_THAT(link_curves_csv(curves), HasSubstr("\nrank,rank,all_gather over 4 ranks,no,262144,"));
}

TEST(LinkCurve, BothWaysCountHalfAndWhatStaysWithinADeviceNothing) {
  LinkLog log;
  log.figures = {{LinkFigureKind::kBothWays, "gpu0", "gpu1", 40e9, 0, "copy", 3},
                 {LinkFigureKind::kOneWay, "gpu0", "gpu0", 900e9, 0, "copy", 4},
                 {LinkFigureKind::kLatency, "gpu0", "gpu1", 2e-6, 0, "P2P", 5},
                 {LinkFigureKind::kOneWay, "cpu", "gpu0", 26e9, 0, "copy", 6}};
  const LinkCurves curves = link_curves(log);
  const LinkCurve* best = best_curve(curves);
  ASSERT_NE(best, nullptr);
  EXPECT_EQ(best->bytes_per_s, 20e9);
  EXPECT_EQ(best->start_s, 2e-6);
  EXPECT_TRUE(has_finding(curves.findings, FindingKind::kIgnored, "within one device"));
  log.figures = {{LinkFigureKind::kOneWay, "cpu", "gpu0", 26e9, 0, "copy", 6}};
  EXPECT_EQ(best_curve(link_curves(log)), nullptr) << "no hop between GPUs";
}

/// A Chakra trace of a run holds the times of the run, op by op.
TEST(ChakraOfARun, TimesAreThoseOfTheRun) {
  const RingProgram program = parse_program(
      "ranks 2\nlanes 2\n"
      "r0 L0 compute time=5us\nr0 L1 send to=1 msg=0 bytes=100 after=r0:0\n"
      "r1 L1 receive from=0 msg=0 bytes=100\nr1 L0 compute time=1us after=r1:0\n");
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 2;
  for (const OpId id : {OpId{0, 0}, OpId{0, 1}, OpId{1, 0}, OpId{1, 1}}) {
    Slice slice = slice_of(program, id);
    slice.posted_ps = slice.start_ps = 1'000'000 * (id.index + 1);
    slice.end_ps = slice.start_ps + 7'654'321;
    timeline.slices.push_back(slice);
  }
  const RingProgram read = parse_chakra(chakra_traces(program, timeline), {"p.0.et", "p.1.et"});
  EXPECT_EQ(read.rank_programs[0].ops[0].fixed_ps, 7'654'321);
  EXPECT_EQ(read.rank_programs[0].ops[1].bytes, 100);
  EXPECT_EQ(read.rank_programs[1].ops[1].fixed_ps, 7'654'321);
  timeline.slices[0].op.index = 9;
  EXPECT_THAT(error_of([&] { chakra_traces(program, timeline); }), HasSubstr("does not have"));
}

}  // namespace
}  // namespace ring
