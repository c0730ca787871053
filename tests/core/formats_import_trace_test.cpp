#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/formats/chrome_trace.h"
#include "core/formats/import/kernel_trace.h"
#include "core/formats/import/trace_events.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::HasSubstr;

KernelTrace trace_of(const std::string& text) {
  std::istringstream input(text);
  return parse_kernel_trace(input, "t.json");
}

std::string kernel(const std::string& name, const std::string& ts, const std::string& dur,
                   int stream, const std::string& category = "kernel",
                   const std::string& args = "") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "ts": )" + ts +
         R"(, "dur": )" + dur + R"(, "args": {"device": 0, "stream": )" + std::to_string(stream) +
         args + "}}";
}

TEST(KernelTrace, UnionsOfCommunicationAndComputation) {
  const KernelTrace trace = trace_of(
      R"({"distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 16},
          "deviceProperties": [{"id": 0, "name": "Some GPU", "numSms": 108}, {"id": 1, "numSms": 108}],
          "traceEvents": [)" +
      kernel("gemm", "100", "10", 7) + "," + kernel("gemm", "105", "10", 8) + "," +
      kernel("ncclDevKernel_SendRecv", "110.5", "20", 9, "kernel",
             R"(, "In msg nelems": 1000, "dtype": "BFloat16")") +
      "," + kernel("Memcpy", "90", "5", 7, "gpu_memcpy") + "," +
      R"({"ph": "X", "cat": "cpu_op", "name": "nccl:all_to_all", "ts": 1, "dur": 2},
         {"ph": "i", "name": "mark", "ts": 1}]})");
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.world_size, 16);
  EXPECT_EQ(trace.listed_devices, 2);
  EXPECT_EQ(trace.sms, 108);
  EXPECT_EQ(trace.device_name, "Some GPU");
  const KernelTotals totals = totals_of(trace);
  EXPECT_EQ(totals.kernels, 3);
  EXPECT_EQ(totals.communication_kernels, 1);
  EXPECT_EQ(totals.compute_ns, 15'000);
  EXPECT_EQ(totals.communication_ns, 20'000);
  EXPECT_EQ(totals.overlap_ns, 4'500);
  EXPECT_EQ(trace.collectives.at("nccl:all_to_all"), 1);
  EXPECT_TRUE(has_finding(trace.findings, FindingKind::kUnknown, "hops of a ring"));
  const Timeline timeline = timeline_of(trace);
  ASSERT_EQ(timeline.slices.size(), 4U);
  EXPECT_EQ(timeline.lanes, 3);
  EXPECT_EQ(timeline.slices.back().kind, OpKind::kReceive);
  EXPECT_EQ(timeline.slices.back().bytes, 2000);
  EXPECT_EQ(timeline.slices.back().start_ps, 20'500'000);
}

TEST(KernelTrace, OldCategoriesBareArraysAndTextTimes) {
  const KernelTrace trace = trace_of("[" + kernel("f", "\"7.25\"", "1", 1, "Kernel") + "]");
  ASSERT_EQ(trace.slices.size(), 1U);
  EXPECT_EQ(trace.slices[0].end_ns, 1000);
  EXPECT_EQ(trace.rank, -1);
}

TEST(KernelTrace, NanosecondsOfLargeTimesAreKept) {
  EXPECT_EQ(nanoseconds_of_microseconds("4458035921123.457"), 4458035921123457);
  EXPECT_EQ(nanoseconds_of_microseconds("1665536373729077"), 1665536373729077000);
  EXPECT_EQ(nanoseconds_of_microseconds("0.0009"), 0);
  EXPECT_EQ(nanoseconds_of_microseconds("1.5e3"), 1'500'000);
  EXPECT_EQ(nanoseconds_of_microseconds("-1"), -1);
  EXPECT_EQ(nanoseconds_of_microseconds("99999999999999999999"), -1);
  EXPECT_EQ(nanoseconds_of_microseconds("x"), -1);
}

TEST(KernelTrace, EveryTruncationIsRefused) {
  const std::string whole =
      R"({"traceEvents": [)" + kernel("f", "1", "1", 1) + "," + kernel("g", "2", "1", 1) + "]}";
  EXPECT_EQ(trace_of(whole).slices.size(), 2U);
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THAT(error_of([&] { trace_of(whole.substr(0, length)); }),
                HasSubstr("t.json: not valid"))
        << length;
  }
  EXPECT_THAT(error_of([&] { trace_of(whole.substr(0, 60)); }), HasSubstr("ends early"));
}

TEST(KernelTrace, HostileFilesAreRefused) {
  EXPECT_THAT(error_of([] { trace_of("{\"a\": 1}"); }), HasSubstr("no array \"traceEvents\""));
  EXPECT_THAT(error_of([] { trace_of("{\"traceEvents\": [" + std::string(100'000, '[')); }),
              HasSubstr("nested deeper than 64"));
}

/// Exported and read again as JSON, every kernel is there with its time.
RC_GTEST_PROP(KernelTrace, ExportKeepsEverySlice, ()) {
  const auto count = *rc::gen::inRange(1, 60);
  std::string text = "[";
  std::multimap<std::string, std::string> wanted;
  for (int i = 0; i < count; ++i) {
    const int ts = *rc::gen::inRange(0, 200), dur = *rc::gen::inRange(0, 50);
    text += (i == 0 ? "" : ",") + kernel(i % 3 == 0 ? "ncclKernel" : "gemm", std::to_string(ts),
                                         std::to_string(dur), i % 4);
  }
  const KernelTrace trace = trace_of(text + "]");
  const Timeline timeline = timeline_of(trace);
  const TraceInput input[] = {{&timeline}};
  const nlohmann::json exported = nlohmann::json::parse(chrome_trace(input));
  std::multiset<std::pair<double, double>> before, after;
  for (const KernelSlice& slice : trace.slices) {
    before.emplace(static_cast<double>(slice.begin_ns) / 1000,
                   static_cast<double>(slice.end_ns - slice.begin_ns) / 1000);
  }
  for (const nlohmann::json& event : exported.at("traceEvents")) {
    if (event.at("ph") == "X") after.emplace(event.at("ts"), event.at("dur"));
  }
  RC_ASSERT(before == after);
}

}  // namespace
}  // namespace ring
