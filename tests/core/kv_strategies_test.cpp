// The strategies in which keys travel, apart from the plain ring.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "core/error.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "tests/core/small_problem.h"

namespace ring {
namespace {

using testing_support::small_problem;

Tuning tuning_of(const std::string& strategy, int ranks) {
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.partition = "contiguous";
  tuning.block_tokens = 4;
  return tuning;
}

/// Bytes sent from each rank to each other rank.
std::map<std::pair<int, int>, Bytes> traffic_of(const RingProgram& program) {
  std::map<std::pair<int, int>, Bytes> traffic;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind == OpKind::kSend) traffic[{rank, op.peer}] += op.bytes;
    }
  }
  return traffic;
}

RC_GTEST_PROP(KvStrategyProperty, EveryProgramIsSound, ()) {
  const int inner = *rc::gen::inRange(1, 4);
  const int ranks = inner * *rc::gen::inRange(1, 4);
  const std::string strategy = *rc::gen::element<std::string>(
      "all-gather-kv", "multi-ring", "multi-ring:1", fmt::format("double-ring:{}", inner));
  Tuning tuning = tuning_of(strategy, ranks);
  tuning.partition = *rc::gen::element<std::string>("contiguous", "zigzag", "striped");
  tuning.block_tokens = *rc::gen::inRange<int64_t>(1, 20);
  tuning.blocks_per_message = *rc::gen::inRange<int64_t>(0, 4);
  tuning.lanes = *rc::gen::inRange(1, 3);
  tuning.pipeline_depth = *rc::gen::inRange(2, 4);
  const std::string mask =
      *rc::gen::element<std::string>("full", "causal", "window:7", "chunked:9", "prefix:1");
  const RingProgram program = plan(small_problem(*rc::gen::inRange<int64_t>(1, 80), mask), tuning);
  const std::vector<Fault> faults = check_program(program);
  for (const Fault& fault : faults) RC_LOG() << fault.message << "\n";
  RC_ASSERT(faults.empty());
}

RC_GTEST_PROP(KvStrategyProperty, AllSendTheSameTotalUnderTheFullMask, ()) {
  const int ranks = *rc::gen::element(2, 4, 6);
  const Problem problem = small_problem(48, "full");
  const Bytes wanted = ranks * (ranks - 1) * problem.kv_bytes(48 / ranks);
  for (const char* strategy : {"pass-kv", "all-gather-kv", "multi-ring", "double-ring:2"}) {
    Bytes sent = 0;
    for (const auto& [pair, bytes] : traffic_of(plan(problem, tuning_of(strategy, ranks)))) {
      sent += bytes;
    }
    RC_ASSERT(sent == wanted);
  }
}

TEST(DoubleRing, CrossesGroupsOnceForEachOtherGroup) {
  const Problem problem = small_problem(64, "full");
  const Bytes message = problem.kv_bytes(8);
  Bytes crossing = 0, inside = 0;
  for (const auto& [pair, bytes] : traffic_of(plan(problem, tuning_of("double-ring:4", 8)))) {
    (pair.first / 4 == pair.second / 4 ? inside : crossing) += bytes;
  }
  EXPECT_EQ(crossing, 8 * 1 * message);
  EXPECT_EQ(inside, 8 * 6 * message);
}

TEST(MultiRing, MessagesUseDifferentLinks) {
  Tuning tuning = tuning_of("multi-ring", 8);
  tuning.block_tokens = 2;
  tuning.blocks_per_message = 1;  // Four messages of a shard of eight tokens.
  const auto traffic = traffic_of(plan(small_problem(64, "full"), tuning));
  EXPECT_EQ(traffic.size(), 8u * 4u) << "each rank sends to four others";
  for (const auto& [pair, bytes] : traffic) {
    EXPECT_EQ(std::gcd((pair.second - pair.first + 8) % 8, 8), 1);
    EXPECT_EQ(bytes, traffic.begin()->second) << "evenly";
  }
}

TEST(AllGatherKv, NothingIsForwarded) {
  const RingProgram program = plan(small_problem(64, "causal"), tuning_of("all-gather-kv", 4));
  for (int rank = 0; rank < 4; ++rank) {
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind != OpKind::kSend) continue;
      EXPECT_EQ(op.kv_shard, rank);
      EXPECT_GT(op.peer, rank) << "earlier ranks see none of these keys";
    }
  }
}

TEST(KvStrategies, RefuseWhatTheyCannotRun) {
  const Problem problem = small_problem(64, "full");
  for (const char* strategy : {"double-ring", "double-ring:3", "double-ring:0", "double-ring:x",
                               "multi-ring:0", "multi-ring:5", "all-gather-kv:3"}) {
    EXPECT_THROW(plan(problem, tuning_of(strategy, 8)), Error) << strategy;
  }
}

}  // namespace
}  // namespace ring
