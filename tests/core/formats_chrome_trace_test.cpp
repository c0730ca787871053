#include "core/formats/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/formats/file_io.h"
#include "core/formats/gzip.h"
#include "tests/core/formats_random.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Slice slice(int rank, int64_t index, OpKind kind, int lane, int peer, Picoseconds posted,
            Picoseconds start, Picoseconds end, Bytes bytes = 0) {
  Slice s;
  s.op = {rank, index};
  s.kind = kind;
  s.lane = lane;
  s.peer = peer;
  s.posted_ps = posted;
  s.start_ps = start;
  s.end_ps = end;
  s.bytes = bytes;
  return s;
}

/// Rank 0 sends 6000 bytes to rank 1 from 2 us to 5 us while it attends from 1 us to 4 us.
Timeline one_hop(TimelineOrigin origin) {
  Timeline timeline;
  timeline.origin = origin;
  timeline.ranks = 2;
  timeline.lanes = 3;
  timeline.slices = {
      slice(0, 0, OpKind::kAttend, 0, -1, 1'000'000, 1'000'000, 4'000'000),
      slice(0, 1, OpKind::kSend, 1, 1, 1'500'000, 2'000'000, 5'000'000, 6000),
      slice(1, 0, OpKind::kReceive, 2, 0, 1'000'000, 2'000'000, 5'000'000, 6000),
  };
  return timeline;
}

json events_of(std::span<const TraceInput> inputs) {
  const json document = json::parse(chrome_trace(inputs));
  EXPECT_EQ(document.at("displayTimeUnit"), "ns");
  return document.at("traceEvents");
}

json of_phase(const json& events, const std::string& phase) {
  json out = json::array();
  for (const json& event : events) {
    if (event.at("ph") == phase) out.push_back(event);
  }
  return out;
}

TEST(ChromeTrace, OneHop) {
  const Timeline timeline = one_hop(TimelineOrigin::kPredicted);
  const TraceInput inputs[] = {{&timeline}};
  const json events = events_of(inputs);

  std::vector<std::string> bars;
  for (const json& e : of_phase(events, "X")) {
    bars.push_back(e.at("name").get<std::string>() + " " + e.at("ts").dump() + " " +
                   e.at("dur").dump());
  }
  EXPECT_THAT(bars, ElementsAre("attend 0.0 3.0", "wait 0.5 0.5", "send 1.0 3.0", "wait 0.0 1.0",
                                "receive 1.0 3.0"));

  const json starts = of_phase(events, "s"), ends = of_phase(events, "f");
  ASSERT_EQ(starts.size(), 1U);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(starts[0].at("ts"), 1.0);
  EXPECT_EQ(ends[0].at("ts"), 3.999);
  EXPECT_EQ(ends[0].at("bp"), "e");
  for (const char* key : {"id", "cat", "name"}) EXPECT_EQ(starts[0].at(key), ends[0].at(key));

  const json counters = of_phase(events, "C");
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters[0].at("args").at("GB/s"), 2.0);  // 6000 bytes in 3000 ns.
  EXPECT_EQ(counters[1].at("args").at("GB/s"), 0.0);
  EXPECT_EQ(counters[1].at("ts"), 4.0);
  EXPECT_THAT(chrome_trace(inputs), HasSubstr("\"ts\":0.500,\"dur\":0.500"));
}

TEST(ChromeTrace, MeasuredAndPredictedStandSideBySide) {
  const Timeline measured = one_hop(TimelineOrigin::kMeasured);
  const Timeline predicted = one_hop(TimelineOrigin::kPredicted);
  const TraceInput inputs[] = {{&measured}, {&predicted}};
  std::map<int, std::string> names;
  for (const json& event : of_phase(events_of(inputs), "M")) {
    if (event.at("name") == "process_name") {
      names[event.at("pid")] = event.at("args").at("name");
    } else if (event.at("name") == "process_sort_index") {
      EXPECT_EQ(event.at("args").at("sort_index"), event.at("pid"));
      EXPECT_TRUE(event.at("args").at("sort_index").is_number());
    }
  }
  EXPECT_THAT(names, ElementsAre(Pair(1, "rank 0 measured"), Pair(2, "rank 0 predicted"),
                                 Pair(3, "rank 1 measured"), Pair(4, "rank 1 predicted")));
}

TEST(ChromeTrace, MessagesFollowTheProgramWhenItIsGiven) {
  RingProgram program;
  program.rank_programs.resize(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int i = 0; i < 2; ++i) {
      Op op;
      op.kind = rank == 0 ? OpKind::kSend : OpKind::kReceive;
      op.message = rank == 0 ? i : 1 - i;  // Received in the other order.
      op.kv_begin = 8 * op.message;
      op.kv_end = op.kv_begin + 8;
      program.rank_programs[static_cast<size_t>(rank)].ops.push_back(op);
    }
  }
  Timeline timeline;
  timeline.ranks = 2;
  timeline.lanes = 1;
  timeline.slices = {slice(0, 0, OpKind::kSend, 0, 1, 0, 0, 1000),
                     slice(0, 1, OpKind::kSend, 0, 1, 1000, 1000, 9000),
                     slice(1, 0, OpKind::kReceive, 0, 0, 0, 0, 9000),
                     slice(1, 1, OpKind::kReceive, 0, 0, 9000, 9000, 10000)};
  const TraceInput with[] = {{&timeline, &program}};
  const json ends = of_phase(events_of(with), "f");
  ASSERT_EQ(ends.size(), 2U);
  EXPECT_EQ(ends[0].at("ts"), 0.009);  // Message 0 is the second receive.
  EXPECT_EQ(ends[1].at("ts"), 0.008);
  EXPECT_THAT(chrome_trace(with), HasSubstr("\"block\":\"8..16\""));
  const TraceInput without[] = {{&timeline, nullptr}};
  EXPECT_EQ(of_phase(events_of(without), "f")[0].at("ts"), 0.008);
}

/// Whatever the timeline: every slice is there once, no two bars of a track overlap, tracks are
/// not shared between processes, all times start from zero, flows pair up, counters end at zero.
RC_GTEST_PROP(ChromeTrace, HoldsForAnyTimeline, (uint64_t seed)) {
  RandomFiles random(seed);
  const Timeline a = random.timeline(TimelineOrigin::kMeasured);
  const Timeline b = random.timeline(TimelineOrigin::kPredicted);
  const TraceInput inputs[] = {{&a}, {&b}};
  const json events = json::parse(chrome_trace(inputs)).at("traceEvents");

  size_t bars = 0;
  double first = 1e300;
  std::map<int, int> process_of;
  std::map<int, double> busy_until;
  std::map<std::string, double> rates;
  std::map<int64_t, int> flows;
  for (const json& event : events) {
    const std::string phase = event.at("ph");
    if (phase == "M") continue;
    const double ts = event.at("ts");
    if (phase == "X") {
      bars += event.at("name") != "wait" ? 1U : 0U;
      const int tid = event.at("tid");
      RC_ASSERT(process_of.emplace(tid, event.at("pid")).first->second == event.at("pid"));
      // Three decimals are exact to a rounding of the double.
      const auto known = busy_until.find(tid);
      const bool is_free = known == busy_until.end() || ts >= known->second * (1 - 1e-15) - 1e-9;
      RC_ASSERT(is_free);
      busy_until[tid] = ts + event.at("dur").get<double>();
      first = std::min(first, ts);
    } else if (phase == "C") {
      rates[event.at("name").get<std::string>() + event.at("pid").dump()] =
          event.at("args").at("GB/s");
    } else {
      flows[event.at("id")] += phase == "s" ? 1 : 100;
    }
  }
  RC_ASSERT(bars == a.slices.size() + b.slices.size());
  if (bars > 0) RC_ASSERT(first == 0.0);
  for (const auto& [link, rate] : rates) RC_ASSERT(rate == 0.0);
  for (const auto& [id, ends] : flows) RC_ASSERT(ends == 101);
}

TEST(ChromeTrace, PacksByTheNameAndTakesEmptyTimelines) {
  const TemporaryFolder folder;
  const Timeline timeline = one_hop(TimelineOrigin::kPredicted);
  const TraceInput inputs[] = {{&timeline}};
  write_chrome_trace(folder / "t.json.gz", inputs);
  EXPECT_TRUE(is_gzip(get(folder / "t.json.gz")));
  EXPECT_EQ(read_file(folder / "t.json.gz"), chrome_trace(inputs));
  const Timeline empty;
  const TraceInput none[] = {{&empty}};
  EXPECT_TRUE(events_of(none).empty());
}

TEST(ChromeTrace, SampledCountersReachAsFarAsTheTimeline) {
  const Timeline timeline = one_hop(TimelineOrigin::kMeasured);  // From 1 us to 5 us.
  const Counter counter{
      "SM clock", "MHz", 1, {{-9'000'000, 1}, {-1'000'000, 2}, {3'000'000, 3}, {7'000'000, 4}}};
  TraceInput input{&timeline};
  input.counters = std::span(&counter, 1);
  std::vector<std::pair<double, double>> points;
  for (const json& event : of_phase(events_of(std::span(&input, 1)), "C")) {
    if (event.at("name") == "gpu 1 SM clock")
      points.emplace_back(event.at("ts").get<double>(), event.at("args").at("MHz").get<double>());
  }
  // The second is that of the begin.
  EXPECT_THAT(points, ElementsAre(Pair(0, 2), Pair(2, 3)));
}

}  // namespace
}  // namespace ring
