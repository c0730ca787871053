// all-gather-kv by groups of KV heads: what is sent and held, and what may not wait for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include <set>

#include "core/error.h"
#include "core/memory_model.h"
#include "core/program_check.h"
#include "core/strategy.h"

namespace ring {
namespace {

using testing::HasSubstr;

constexpr int64_t kBatch = 2, kHeads = 12, kKvHeads = 6, kDim = 8, kDimV = 5, kElement = 2;

Problem problem_of(int64_t seq_len, const std::string& mask, Pass pass = Pass::kForward) {
  Problem problem;
  problem.batch = kBatch;
  problem.heads = kHeads;
  problem.kv_heads = kKvHeads;
  problem.head_dim = kDim;
  problem.head_dim_v = kDimV;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::parse(mask, seq_len);
  problem.pass = pass;
  return problem;
}

Tuning tuning_of(int groups, int ranks) {
  Tuning tuning;
  tuning.strategy = fmt::format("all-gather-kv:{}", groups);
  tuning.ranks = ranks;
  tuning.partition = "contiguous";
  tuning.block_tokens = 3;
  return tuning;
}

RC_GTEST_PROP(HeadGroupsProperty, EveryProgramIsSound, ()) {
  Tuning tuning = tuning_of(*rc::gen::element(1, 2, 3, 6), *rc::gen::inRange(1, 9));
  tuning.partition = *rc::gen::element<std::string>("contiguous", "zigzag", "striped:2");
  tuning.block_tokens = *rc::gen::inRange<int64_t>(1, 20);
  tuning.blocks_per_message = *rc::gen::inRange<int64_t>(0, 4);
  tuning.lanes = *rc::gen::inRange(1, 3);
  tuning.pipeline_depth = *rc::gen::inRange(1, 5);
  const std::string mask =
      *rc::gen::element<std::string>("full", "causal", "window:7", "chunked:9", "decode:1");
  const Pass pass = *rc::gen::element(Pass::kForward, Pass::kForwardBackward, Pass::kBackward);
  if (has_backward(pass)) tuning.accumulation_steps = *rc::gen::inRange(1, 3);
  if (!has_backward(pass)) tuning.is_deterministic = *rc::gen::arbitrary<bool>();
  if (tuning.is_deterministic) tuning.partition = "contiguous";
  const RingProgram program =
      plan(problem_of(*rc::gen::inRange<int64_t>(1, 80), mask, pass), tuning);
  const std::vector<Fault> faults = check_program(program);
  for (const Fault& fault : faults) RC_LOG() << fault.message << "\n";
  RC_ASSERT(faults.empty());
}

// The bytes of all heads at once, in as many parts as there are groups.
TEST(HeadGroups, SendTheSameBytesInParts) {
  constexpr int64_t kShard = 5;
  for (const int ranks : {2, 3, 5, 7, 8}) {
    for (const int groups : {1, 2, 3, 6}) {
      for (const Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
        const RingProgram program =
            plan(problem_of(kShard * ranks, "full", pass), tuning_of(groups, ranks));
        const Bytes values = kBatch * kShard * kKvHeads * (kDim + kDimV);
        const int64_t passes = has_backward(pass) ? 2 : 1;
        for (const RankProgram& rank : program.rank_programs) {
          Bytes keys = 0, gradients = 0;
          for (const Op& op : rank.ops) {
            if (op.kind != OpKind::kSend) continue;
            const bool is_keys = op.payload == Payload::kKeyValue;
            EXPECT_EQ(op.bytes, values / groups * (is_keys ? kElement : 4));
            (is_keys ? keys : gradients) += op.bytes;
          }
          EXPECT_EQ(keys, passes * (ranks - 1) * values * kElement);
          EXPECT_EQ(gradients, (passes - 1) * (ranks - 1) * values * 4);
        }
      }
    }
  }
}

// Two groups of the keys of all, of which those of the rank itself are packed; with one group they
// are sent from home.
TEST(HeadGroups, HoldTheKeysOfTwoGroups) {
  constexpr int64_t kShard = 5;
  for (const int ranks : {2, 3, 5, 8}) {
    const int64_t tokens = kShard * ranks;
    for (const int groups : {1, 2, 3, 6}) {
      for (const int depth : {1, 2, 4}) {
        Tuning tuning = tuning_of(groups, ranks);
        tuning.pipeline_depth = depth;
        const RingProgram program = plan(problem_of(tokens, "full"), tuning);
        const Bytes head = kBatch * (kDim + kDimV) * kElement;  // Of a token.
        const Bytes gathered = (tokens - (groups > 1 ? 0 : kShard)) * head;
        const Bytes own =
            kBatch * kShard * kHeads * ((kDim + kDimV) * kElement + 4 + (kDimV + 2) * 4) +
            kShard * kKvHeads * head;  // Q, output, lse, state; K and V.
        for (const RankProgram& rank : program.rank_programs) {
          EXPECT_EQ(rank_bytes(program.problem, rank.storage),
                    own + std::min(depth, groups) * gathered * kKvHeads / groups)
              << ranks << " ranks, " << groups << " groups, depth " << depth;
        }
      }
    }
  }
}

// Under a causal mask the first of contiguous ranks needs nothing, the last one everything.
TEST(HeadGroups, HoldOnlyKeysThatTheMaskAsksFor) {
  const RingProgram program = plan(problem_of(24, "causal"), tuning_of(3, 4));
  for (int rank = 0; rank < 4; ++rank) {
    Tokens received = 0;
    for (const BufferShape& shape :
         program.rank_programs[static_cast<size_t>(rank)].storage.shaped_buffers)
      received += shape.memory_of < 0 ? shape.tokens : 0;
    const Tokens packed = rank < 3 ? 6 : 0;
    EXPECT_EQ(received, 2 * (6 * rank + packed)) << rank;
  }
}

/// Whether the op, or one that it waits for within the rank, computes heads of the group.
bool waits_for_group(const RankProgram& rank, size_t index, int64_t first_head) {
  std::set<size_t> open{index}, seen;
  while (!open.empty()) {
    const size_t at = *open.begin();
    open.erase(open.begin());
    if (!seen.insert(at).second) continue;
    const Op& op = rank.ops[at];
    if (computes_pairs(op.kind) && op.head_begin == first_head) return true;
    for (size_t i = 0; i < at; ++i) {
      const Op& before = rank.ops[i];
      const bool is_lane = before.lane == op.lane && before.lane_position == op.lane_position - 1;
      bool is_dep = false;
      for (const LanePoint& dep : rank.deps_of(op))
        is_dep = is_dep || (dep.lane == before.lane && dep.position == before.lane_position);
      if (is_lane || is_dep) open.insert(i);
    }
  }
  return false;
}

// That is what double buffering is for: group 1 is sent and received while group 0 is computed,
// group 2 only after that.
TEST(HeadGroups, TheNextGroupDoesNotWaitForThePresentOne) {
  for (const Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
    const RingProgram program = plan(problem_of(20, "full", pass), tuning_of(3, 4));
    for (const RankProgram& rank : program.rank_programs) {
      for (size_t i = 0; i < rank.ops.size(); ++i) {
        const Op& op = rank.ops[i];
        const bool moves = op.kind == OpKind::kSend || op.kind == OpKind::kReceive;
        if (!moves || op.payload != Payload::kKeyValue) continue;
        const bool is_first_pass = i < rank.ops.size() / (has_backward(pass) ? 4 : 1);
        if (op.head_begin == 4 && is_first_pass) {
          EXPECT_FALSE(waits_for_group(rank, i, 0));
        }
        if (op.head_begin == 8 && op.kind == OpKind::kReceive) {
          EXPECT_TRUE(waits_for_group(rank, i, 0));
        }
      }
    }
  }
}

// Groups two apart share memory: the third must wait until the first was read.
TEST(HeadGroups, TheCheckFindsAGroupThatIsOverwritten) {
  const Problem problem = problem_of(20, "full");
  RingProgram program = plan(problem, tuning_of(3, 4));
  ASSERT_TRUE(check_program(program).empty());
  for (Op& op : program.rank_programs[1].ops) {
    if (op.kind == OpKind::kReceive && op.head_begin == 8) op.dep_count = 0;
  }
  const std::vector<Fault> faults = check_program(program);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults.front().kind, FaultKind::kBufferRace) << faults.front().message;
}

TEST(HeadGroups, TheCheckFindsHeadsOfAnotherGroup) {
  RingProgram program = plan(problem_of(20, "full"), tuning_of(3, 4));
  RankProgram& rank = program.rank_programs[1];
  const int32_t arrivals = 3, groups = 3;
  for (Op& op : rank.ops) {  // The first group's keys are read as if they were the third's.
    if (op.kind == OpKind::kAttend && op.head_begin == 8 && op.buffer != kHomeBuffer)
      op.buffer -= 2 * arrivals;
  }
  const std::vector<Fault> faults = check_program(program);
  ASSERT_FALSE(faults.empty());
  EXPECT_THAT(faults.front().message, HasSubstr("heads"));
  RingProgram early = plan(problem_of(20, "full"), tuning_of(3, 4));
  for (Op& op : early.rank_programs[1].ops) {  // Received where the third group's heads belong.
    if (op.kind == OpKind::kReceive && op.buffer == groups) op.buffer += 2 * arrivals;
  }
  EXPECT_FALSE(check_program(early).empty());
}

TEST(HeadGroups, RefuseUnequalGroupsAndSayWhichAreLegal) {
  const auto refusal = [](Tuning tuning, const Problem& problem) {
    try {
      plan(problem, tuning);
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return std::string("planned");
  };
  const Problem problem = problem_of(24, "causal");
  const std::string four = refusal(tuning_of(4, 3), problem);
  EXPECT_THAT(four, HasSubstr("6 KV heads do not make 4 equal groups"));
  EXPECT_THAT(four, HasSubstr("legal numbers of groups: 1, 2, 3, 6"));
  EXPECT_THAT(four, HasSubstr("nearest legal: --strategy all-gather-kv:3"));
  EXPECT_THAT(refusal(tuning_of(12, 3), problem),
              HasSubstr("nearest legal: --strategy all-gather-kv:6"));
  EXPECT_THAT(refusal(tuning_of(0, 3), problem), HasSubstr("legal numbers of groups"));
  Tuning queries = tuning_of(3, 3);
  queries.backward = BackwardMoves::kQueries;
  const std::string moves = refusal(queries, problem_of(24, "causal", Pass::kForwardBackward));
  EXPECT_THAT(moves, HasSubstr("the query side does not travel"));
  EXPECT_THAT(moves, HasSubstr("nearest legal: --strategy all-gather-kv"));
}

}  // namespace
}  // namespace ring
