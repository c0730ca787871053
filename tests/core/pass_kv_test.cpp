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

Tuning tuning_of(int ranks, Tokens block, int depth, const std::string& partition = "zigzag") {
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.block_tokens = block;
  tuning.pipeline_depth = depth;
  tuning.partition = partition;
  return tuning;
}

int64_t count_kind(const RingProgram& program, OpKind kind) {
  int64_t count = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) count += op.kind == kind ? 1 : 0;
  }
  return count;
}

RC_GTEST_PROP(PassKvProperty, EveryProgramIsSound, ()) {
  const int64_t seq_len = *rc::gen::inRange<int64_t>(1, 80);
  const std::string mask =
      *rc::gen::element<std::string>("full", "causal", "window:7", "chunked:9", "prefix:1");
  const std::string partition =
      *rc::gen::element<std::string>("contiguous", "zigzag", "striped", "striped:3");
  Tuning tuning = tuning_of(*rc::gen::inRange(1, 9), *rc::gen::inRange<int64_t>(1, 20),
                            *rc::gen::inRange(2, 5), partition);
  tuning.blocks_per_message = *rc::gen::inRange<int64_t>(0, 4);
  tuning.lanes = *rc::gen::inRange(1, 4);
  const RingProgram program = plan(small_problem(seq_len, mask), tuning);
  const std::vector<Fault> faults = check_program(program);
  for (const Fault& fault : faults) RC_LOG() << fault.message << "\n";
  RC_ASSERT(faults.empty());
}

RC_GTEST_PROP(PassKvProperty, DeterministicProgramsAreSound, ()) {
  Tuning tuning = tuning_of(*rc::gen::inRange(1, 9), *rc::gen::inRange<int64_t>(1, 20), 2,
                            *rc::gen::element<std::string>("contiguous", "zigzag"));
  tuning.is_deterministic = true;
  const int64_t seq_len = *rc::gen::inRange<int64_t>(1, 120);
  const RingProgram program =
      plan(small_problem(seq_len, *rc::gen::element<std::string>("full", "causal")), tuning);
  RC_ASSERT(check_program(program).empty());
  for (const RankProgram& rank : program.rank_programs) {
    int64_t started = 0, merged = 0;
    for (const Op& op : rank.ops) {
      started += op.kind == OpKind::kAttend && op.starts_state ? 1 : 0;
      merged += op.kind == OpKind::kMerge ? 1 : 0;
    }
    RC_ASSERT(started == 0 || merged == started - 1);
  }
}

TEST(PassKv, DepthOneOnARingOfThreeIsRefusedWithTheCycle) {
  const RingProgram program = plan(small_problem(48, "full"), tuning_of(3, 16, 1, "contiguous"));
  const std::vector<Fault> faults = check_program(program);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0].kind, FaultKind::kDeadlock);
  std::vector<bool> is_named(3, false);
  for (const OpId& id : faults[0].ops) is_named[static_cast<size_t>(id.rank)] = true;
  EXPECT_EQ(is_named, (std::vector<bool>{true, true, true}));
  EXPECT_NE(faults[0].message.find("waits for"), std::string::npos);
  EXPECT_THROW(require_sound(program), Error);
}

TEST(PassKv, DepthOneOnARingOfTwoNeedsNoForwarding) {
  EXPECT_TRUE(check_program(plan(small_problem(48, "full"), tuning_of(2, 16, 1))).empty());
}

TEST(PassKv, FullMaskSendsEveryShardToEveryOtherRank) {
  const Problem problem = small_problem(64, "full");
  const RingProgram program = plan(problem, tuning_of(4, 16, 2, "contiguous"));
  Bytes sent = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) sent += op.kind == OpKind::kSend ? op.bytes : 0;
  }
  // P (P - 1) hops of 2 (S / P) Hkv D b, here with unlike dims.
  EXPECT_EQ(sent, 4 * 3 * (16 * 2 * (8 + 6) * 4));
  EXPECT_EQ(count_kind(program, OpKind::kAttend), 16);
}

TEST(PassKv, HopsThatNobodyNeedsAreNotSent) {
  // Window 8 over shards of 16: a rank needs its left neighbour only, so one hop is made by all
  // but the last rank.
  const RingProgram program =
      plan(small_problem(64, "window:8"), tuning_of(4, 16, 2, "contiguous"));
  EXPECT_EQ(count_kind(program, OpKind::kSend), 3);
  EXPECT_EQ(count_kind(program, OpKind::kAttend), 4 + 3);
}

TEST(PassKv, CountsOfALongSequenceAreExact) {
  Problem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::full(int64_t{1} << 20);
  // F29: 4 S^2 H D = 2^54, and K + V of 2^20 tokens are 2^32 bytes, 2^29 per rank at 8 ranks.
  EXPECT_EQ(problem.flops(int64_t{1} << 40), int64_t{1} << 54);
  EXPECT_EQ(problem.kv_bytes(int64_t{1} << 20), int64_t{1} << 32);
  const RingProgram program = plan(problem, tuning_of(8, 4096, 2, "contiguous"));
  Flops flops = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) {
      flops += op.flops;
      if (op.kind == OpKind::kSend) {
        EXPECT_EQ(op.bytes, int64_t{1} << 29);
      }
    }
  }
  EXPECT_EQ(flops, int64_t{1} << 54);
}

TEST(PassKvFaults, F27BytesPerHopWithUnlikeHeadDims) {
  Problem problem;
  problem.heads = 8;
  problem.kv_heads = 2;
  problem.head_dim = 192;
  problem.head_dim_v = 128;
  problem.dtype = DType::kBF16;
  EXPECT_EQ(problem.kv_bytes(1024), 1'310'720);
  problem.heads = problem.kv_heads = 128;
  EXPECT_EQ(problem.kv_bytes(1024), 83'886'080);
}

TEST(PassKv, RefusesTuningsThatMakeNoSense) {
  const Problem problem = small_problem(64, "full");
  const auto refuses = [&](auto change) {
    Tuning tuning = tuning_of(4, 16, 2);
    change(tuning);
    EXPECT_THROW(plan(problem, tuning), Error);
  };
  refuses([](Tuning& t) { t.ranks = 0; });
  refuses([](Tuning& t) { t.block_tokens = 0; });
  refuses([](Tuning& t) { t.pipeline_depth = 0; });
  refuses([](Tuning& t) { t.blocks_per_message = -1; });
  refuses([](Tuning& t) { t.lanes = 0; });
  refuses([](Tuning& t) { t.strategy = "pass-qv"; });
  refuses([](Tuning& t) { t.strategy = "pass-kv:2"; });
  refuses([](Tuning& t) {
    t.is_deterministic = true;
    t.partition = "striped";
  });
}

RC_GTEST_PROP(PassKvProperty, TextReadsBackToTheSameText, ()) {
  const RingProgram program =
      plan(small_problem(*rc::gen::inRange<int64_t>(1, 60), "causal"),
           tuning_of(*rc::gen::inRange(1, 5), *rc::gen::inRange<int64_t>(1, 20), 2));
  const std::string text = program_text(program);
  RC_ASSERT(program_text(parse_program(text)) == text);
}

}  // namespace
}  // namespace ring
