// Backward programs: sound at every tuning, with the bytes of the closed form; broken ones are
// found.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "core/program_check.h"
#include "core/program_text.h"
#include "core/strategy.h"
#include "tests/core/small_problem.h"

namespace ring {
namespace {

using testing_support::small_problem;

Problem backward_problem(int64_t seq_len, const std::string& mask) {
  Problem problem = small_problem(seq_len, mask);
  problem.pass = Pass::kForwardBackward;
  return problem;
}

Tuning tuning_of(const std::string& strategy, int ranks, BackwardMoves moves) {
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.block_tokens = 4;
  tuning.partition = "contiguous";
  tuning.backward = moves;
  return tuning;
}

Bytes sent(const RingProgram& program, Payload payload) {
  Bytes sum = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) {
      if (op.kind == OpKind::kSend && op.payload == payload) sum += op.bytes;
    }
  }
  return sum;
}

RC_GTEST_PROP(BackwardProgramProperty, EveryProgramIsSound, ()) {
  const int inner = *rc::gen::inRange(1, 4);
  Tuning tuning = tuning_of(
      *rc::gen::element<std::string>("pass-kv", "all-gather-kv", "multi-ring", "pass-q",
                                     "bidirectional-ring", fmt::format("double-ring:{}", inner),
                                     fmt::format("ulysses-ring:{},repeat", inner)),
      inner * *rc::gen::inRange(1, 4),
      *rc::gen::element(BackwardMoves::kAuto, BackwardMoves::kKeys, BackwardMoves::kQueries));
  tuning.partition = *rc::gen::element<std::string>("contiguous", "zigzag", "striped", "striped:3");
  tuning.block_tokens = *rc::gen::inRange<int64_t>(1, 20);
  tuning.blocks_per_message = *rc::gen::inRange<int64_t>(0, 4);
  tuning.pipeline_depth = *rc::gen::inRange(2, 5);
  tuning.lanes = *rc::gen::inRange(1, 3);
  tuning.accumulation_steps = *rc::gen::inRange(1, 3);
  tuning.optimizer_gap_ps = *rc::gen::element<Picoseconds>(0, 1000);
  Problem problem = backward_problem(
      *rc::gen::inRange<int64_t>(1, 80),
      *rc::gen::element<std::string>("full", "causal", "window:7", "chunked:9", "prefix:1"));
  problem.pass = *rc::gen::element(Pass::kBackward, Pass::kForwardBackward);
  problem.kv_heads = *rc::gen::element(1, inner);
  problem.heads = problem.kv_heads * inner;
  const RingProgram program = plan(problem, tuning);
  const std::vector<Fault> faults = check_program(program);
  for (const Fault& fault : faults) RC_LOG() << fault.message << "\n";
  RC_ASSERT(faults.empty());
}

// P (P - 1) hops of what travels and as many of its gradients, which take the last one home; the
// owner's own share does not travel.
TEST(BackwardProgram, BytesOfTheFullMask) {
  for (const char* strategy : {"pass-kv", "all-gather-kv", "multi-ring", "double-ring:2"}) {
    for (const int ranks : {2, 4, 6}) {
      Problem problem = backward_problem(48, "full");
      const Bytes hops = ranks * (ranks - 1);
      const Tokens shard = 48 / ranks;
      const RingProgram keys = plan(problem, tuning_of(strategy, ranks, BackwardMoves::kKeys));
      EXPECT_EQ(sent(keys, Payload::kKeyValue), 2 * hops * problem.kv_bytes(shard));
      EXPECT_EQ(sent(keys, Payload::kKeyGradients), hops * shard * 2 * (8 + 6) * 4);
      const RingProgram rows = plan(problem, tuning_of(strategy, ranks, BackwardMoves::kQueries));
      EXPECT_EQ(sent(rows, Payload::kKeyValue), hops * problem.kv_bytes(shard));
      EXPECT_EQ(sent(rows, Payload::kQuerySide), hops * shard * 4 * ((8 + 6) * 4 + 8));
      EXPECT_EQ(sent(rows, Payload::kQueryGradients), hops * shard * 4 * 8 * 4);
    }
  }
}

TEST(BackwardProgram, HopsThatNobodyNeedsAreNotSent) {
  // Window 8 over shards of 16: each rank but the last has one neighbour that adds to its dK, dV.
  const RingProgram program =
      plan(backward_problem(64, "window:8"), tuning_of("pass-kv", 4, BackwardMoves::kKeys));
  int gradients = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind != OpKind::kSend || op.payload != Payload::kKeyGradients) continue;
      EXPECT_EQ(op.peer, rank - 1) << "straight home";
      ++gradients;
    }
  }
  EXPECT_EQ(gradients, 3);
}

TEST(BackwardProgram, FlopsAreFiveProductsAPair) {
  Problem problem = backward_problem(32, "causal");
  problem.pass = Pass::kBackward;
  const RingProgram program = plan(problem, tuning_of("pass-kv", 3, BackwardMoves::kKeys));
  Flops flops = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) flops += op.flops;
  }
  EXPECT_EQ(flops, 32 * 33 / 2 * 4 * 2 * (3 * 8 + 2 * 6));
}

// With 8 query heads a KV head, K and V are the lighter side; without GQA the query side is, since
// then dQ alone travels in fp32: 2 (D b) + 8 + 4 D against 2 D b + 8 D a token and head.
TEST(BackwardProgram, TheLighterSideTravels) {
  Problem problem = backward_problem(256, "full");
  problem.head_dim = problem.head_dim_v = 128;
  problem.dtype = DType::kBF16;
  const auto moves = [&](int64_t kv_heads) {
    problem.heads = 8;
    problem.kv_heads = kv_heads;
    const RingProgram program = plan(problem, tuning_of("pass-kv", 4, BackwardMoves::kAuto));
    EXPECT_EQ(program.notes.size(), 1u);
    return sent(program, Payload::kQuerySide) > 0 ? "queries" : "keys";
  };
  EXPECT_STREQ(moves(1), "keys");
  EXPECT_STREQ(moves(8), "queries");
}

TEST(BackwardProgram, AccumulationRepeatsThePassesAndEndsWithTheGap) {
  Tuning tuning = tuning_of("pass-kv", 3, BackwardMoves::kKeys);
  const Problem problem = backward_problem(30, "causal");
  const int64_t once = plan(problem, tuning).op_count();
  tuning.accumulation_steps = 4;
  tuning.optimizer_gap_ps = 7000;
  const RingProgram program = plan(problem, tuning);
  EXPECT_EQ(program.op_count(), 4 * once + 3);
  for (const RankProgram& rank : program.rank_programs) {
    EXPECT_EQ(rank.ops.back().kind, OpKind::kCompute);
    EXPECT_EQ(rank.ops.back().fixed_ps, 7000);
    int resets = 0;
    for (const Op& op : rank.ops) resets += op.kind == OpKind::kDelta && op.starts_state ? 1 : 0;
    EXPECT_EQ(resets, 1) << "later passes add to what is there";
  }
}

TEST(BackwardProgram, RefusesWhatMakesNoSense) {
  Problem problem = backward_problem(48, "causal");
  const auto refuses = [&](auto change) {
    Tuning tuning = tuning_of("pass-kv", 3, BackwardMoves::kAuto);
    change(tuning);
    EXPECT_THROW(plan(problem, tuning), Error);
  };
  refuses([](Tuning& t) { t.accumulation_steps = 0; });
  refuses([](Tuning& t) { t.optimizer_gap_ps = -1; });
  refuses([](Tuning& t) { t.is_deterministic = true; });
  problem.pass = Pass::kForward;
  refuses([](Tuning& t) { t.accumulation_steps = 2; });
  refuses([](Tuning& t) { t.optimizer_gap_ps = 5; });
  refuses([](Tuning& t) { t.backward = BackwardMoves::kQueries; });
  EXPECT_THROW(parse_backward_moves("k"), Error);
  EXPECT_EQ(parse_pass("backward"), Pass::kBackward);
}

class BrokenBackward : public testing::Test {
 protected:
  BrokenBackward()
      : program_(
            plan(backward_problem(32, "full"), tuning_of("pass-kv", 4, BackwardMoves::kKeys))) {}
  /// An op of rank 1 of this kind that has to do with gradients on their way.
  Op& travelling(OpKind kind) {
    for (Op& op : program_.rank_programs[1].ops) {
      const bool is_on_way =
          kind == OpKind::kBackward ? op.state != kHomeBuffer : is_gradient(op.payload);
      if (op.kind == kind && is_on_way) return op;
    }
    throw std::logic_error("none");
  }
  bool finds(FaultKind kind) {
    for (const Fault& fault : check_program(program_)) {
      if (fault.kind == kind) return true;
    }
    return false;
  }
  RingProgram program_;
};

TEST_F(BrokenBackward, IsSoundBefore) { EXPECT_TRUE(check_program(program_).empty()); }

TEST_F(BrokenBackward, ALostShareIsFound) {
  Op& add = travelling(OpKind::kAdd);
  add.source_state = 1 - add.source_state;  // Not what arrived.
  EXPECT_TRUE(finds(FaultKind::kGradientsLost));
}

TEST_F(BrokenBackward, AShareThatIsAddedTwiceIsFound) {
  RankProgram& rank = program_.rank_programs[1];
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    if (rank.ops[i].kind != OpKind::kAdd || rank.ops[i].state != kHomeBuffer) continue;
    Op again = rank.ops[i];
    again.lane_position = 0;
    for (const Op& op : rank.ops) again.lane_position += op.lane == kComputeLane ? 1 : 0;
    rank.ops.push_back(again);
    break;
  }
  EXPECT_TRUE(finds(FaultKind::kGradientsRepeated));
}

TEST_F(BrokenBackward, ASumThatDoesNotWaitIsARace) {
  travelling(OpKind::kAdd).dep_count = 0;
  EXPECT_TRUE(finds(FaultKind::kBufferRace));
}

TEST_F(BrokenBackward, ASendThatDoesNotWaitIsARace) {
  travelling(OpKind::kSend).dep_count = 0;
  EXPECT_TRUE(finds(FaultKind::kBufferRace));
}

TEST_F(BrokenBackward, AGradientBufferThatIsNotThereIsFound) {
  travelling(OpKind::kBackward).state = 99;
  EXPECT_TRUE(finds(FaultKind::kBadOp));
}

TEST_F(BrokenBackward, LostPairsAreFound) {
  travelling(OpKind::kBackward).head_end -= 1;
  EXPECT_TRUE(finds(FaultKind::kPairsMissing));
}

RC_GTEST_PROP(BackwardProgramProperty, TextReadsBackToTheSameText, ()) {
  Tuning tuning = tuning_of("pass-kv", *rc::gen::inRange(1, 5),
                            *rc::gen::element(BackwardMoves::kKeys, BackwardMoves::kQueries));
  tuning.accumulation_steps = *rc::gen::inRange(1, 3);
  const RingProgram program =
      plan(backward_problem(*rc::gen::inRange<int64_t>(1, 60), "causal"), tuning);
  const std::string text = program_text(program);
  RC_ASSERT(program_text(parse_program(text)) == text);
}

}  // namespace
}  // namespace ring
