// What strategies put on the wire, against closed forms.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <string>

#include "core/program_check.h"
#include "core/strategy.h"

namespace ring {
namespace {

constexpr int64_t kBatch = 2, kShard = 5, kDim = 8, kDimV = 6, kElement = 2;

Problem problem_of(int ranks, int64_t heads, int64_t kv_heads, const std::string& mask = "full") {
  Problem problem;
  problem.batch = kBatch;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.head_dim = kDim;
  problem.head_dim_v = kDimV;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::parse(mask, kShard * ranks);
  return problem;
}

RingProgram program_of(const Problem& problem, const std::string& strategy, int ranks,
                       const std::string& partition = "contiguous") {
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.partition = partition;
  tuning.block_tokens = 3;
  const RingProgram program = plan(problem, tuning);
  for (const Fault& fault : check_program(program)) ADD_FAILURE() << fault.message;
  return program;
}

/// Bytes that rank 0 sends, by what they carry. `all`: that all ranks send.
std::map<Payload, Bytes> sent(const RingProgram& program, bool all = false) {
  std::map<Payload, Bytes> bytes;
  for (int rank = 0; rank < (all ? program.ranks() : 1); ++rank) {
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind == OpKind::kSend) bytes[op.payload] += op.bytes;
    }
  }
  return bytes;
}

TEST(WireBytes, QueryRings) {
  for (const int ranks : {2, 3, 5, 8}) {
    for (const char* strategy : {"pass-q", "bidirectional-ring"}) {
      const auto bytes = sent(program_of(problem_of(ranks, 6, 3), strategy, ranks));
      const Bytes rows = kBatch * kShard * 6 * (ranks - 1);
      EXPECT_EQ(bytes.at(Payload::kQuery), rows * kDim * kElement);
      EXPECT_EQ(bytes.at(Payload::kPartial), rows * (kDimV + 1) * 4) << "output and lse in fp32";
      EXPECT_EQ(bytes.size(), 2U);
    }
  }
}

TEST(WireBytes, Ulysses) {
  for (const int ranks : {2, 3, 5, 8}) {
    const Bytes rows = kBatch * kShard * (ranks - 1) * kElement;
    const auto even = sent(program_of(problem_of(ranks, 4 * ranks, 2 * ranks), "ulysses", ranks));
    EXPECT_EQ(even.at(Payload::kQuery), rows * 4 * kDim);
    EXPECT_EQ(even.at(Payload::kKeyValue), rows * 2 * (kDim + kDimV));
    EXPECT_EQ(even.at(Payload::kOutput), rows * 4 * kDimV);
    const auto copied = sent(program_of(problem_of(ranks, 3 * ranks, 1), "ulysses:repeat", ranks));
    EXPECT_EQ(copied.at(Payload::kKeyValue), rows * (kDim + kDimV)) << "the one KV head to each";
    const auto held =
        sent(program_of(problem_of(ranks, 4 * ranks, ranks), "tensor-parallel", ranks));
    EXPECT_EQ(held.size(), 1U);
    EXPECT_EQ(held.at(Payload::kOutput), rows * 4 * kDimV);
  }
}

TEST(WireBytes, UlyssesTimesRing) {
  const Problem problem = problem_of(6, 12, 6);
  const auto bytes = sent(program_of(problem, "ulysses-ring:3", 6));
  const Bytes token = kBatch * kElement;
  // To two mates: 4 of 12 query heads, 2 of 6 KV heads. Then the group's 15 tokens to the other.
  EXPECT_EQ(bytes.at(Payload::kQuery), 2 * kShard * token * 4 * kDim);
  EXPECT_EQ(bytes.at(Payload::kKeyValue), (2 * kShard + 3 * kShard) * token * 2 * (kDim + kDimV));
  EXPECT_EQ(bytes.at(Payload::kOutput), 2 * kShard * token * 4 * kDimV);
}

TEST(WireBytes, TreeDecode) {
  for (const int ranks : {2, 3, 5, 8}) {
    const Problem problem = problem_of(ranks, 6, 3, "decode:2");
    const auto bytes = sent(program_of(problem, "tree-decode", ranks), true);
    const Bytes rows = kBatch * 2 * 6 * (ranks - 1);
    EXPECT_EQ(bytes.at(Payload::kQuery), rows * kDim * kElement);
    EXPECT_EQ(bytes.at(Payload::kPartial), rows * (kDimV + 1) * 4);
  }
}

Problem both_passes(Problem problem) {
  problem.pass = Pass::kForwardBackward;
  return problem;
}

// The query side walks where Q walked, dQ comes home; K and V stay.
TEST(WireBytes, QueryRingsBackward) {
  for (const int ranks : {2, 3, 5, 8}) {
    for (const char* strategy : {"pass-q", "bidirectional-ring"}) {
      const auto bytes = sent(program_of(both_passes(problem_of(ranks, 6, 3)), strategy, ranks));
      const Bytes rows = kBatch * kShard * 6 * (ranks - 1);
      EXPECT_EQ(bytes.at(Payload::kQuery), rows * kDim * kElement);
      EXPECT_EQ(bytes.at(Payload::kPartial), rows * (kDimV + 1) * 4);
      EXPECT_EQ(bytes.at(Payload::kQuerySide), rows * ((kDim + kDimV) * kElement + 8));
      EXPECT_EQ(bytes.at(Payload::kQueryGradients), rows * kDim * 4);
      EXPECT_EQ(bytes.size(), 4U);
    }
  }
}

// dO goes where Q went, dQ, dK and dV come back in fp32.
TEST(WireBytes, UlyssesBackward) {
  for (const int ranks : {2, 3, 5, 8}) {
    const Bytes rows = kBatch * kShard * (ranks - 1);
    const auto even =
        sent(program_of(both_passes(problem_of(ranks, 4 * ranks, 2 * ranks)), "ulysses", ranks));
    EXPECT_EQ(even.at(Payload::kQuery), rows * 4 * kDim * kElement);
    EXPECT_EQ(even.at(Payload::kOutputGradient), rows * 4 * kDimV * kElement);
    EXPECT_EQ(even.at(Payload::kQueryGradients), rows * 4 * kDim * 4);
    EXPECT_EQ(even.at(Payload::kKeyGradients), rows * 2 * (kDim + kDimV) * 4);
    EXPECT_EQ(even.size(), 6U);
    const auto held = sent(
        program_of(both_passes(problem_of(ranks, 4 * ranks, ranks)), "tensor-parallel", ranks));
    EXPECT_EQ(held.size(), 2U) << "gradients stay with the heads";
    EXPECT_EQ(held.at(Payload::kOutput), rows * 4 * kDimV * kElement);
    EXPECT_EQ(held.at(Payload::kOutputGradient), rows * 4 * kDimV * kElement);
  }
}

// To two mates as above; then the group's 15 tokens to the other group, forward and backward, and
// the gradients of its 15 tokens home.
TEST(WireBytes, UlyssesTimesRingBackward) {
  Tuning tuning;
  tuning.strategy = "ulysses-ring:3";
  tuning.ranks = 6;
  tuning.partition = "contiguous";
  tuning.block_tokens = 3;
  tuning.backward = BackwardMoves::kKeys;
  const auto bytes = sent(plan(both_passes(problem_of(6, 12, 6)), tuning));
  const Bytes key_values = 2 * (kDim + kDimV);
  EXPECT_EQ(bytes.at(Payload::kKeyValue), (2 + 3 + 3) * kShard * kBatch * kElement * key_values);
  EXPECT_EQ(bytes.at(Payload::kKeyGradients), (3 + 2) * kShard * kBatch * 4 * key_values);
  EXPECT_EQ(bytes.at(Payload::kQueryGradients), 2 * kShard * kBatch * 4 * 4 * kDim);
}

TEST(WireBytes, NothingLocally) {
  EXPECT_TRUE(sent(program_of(problem_of(4, 6, 3), "local", 4), true).empty());
  for (const char* strategy : {"flash", "chunked", "naive"})
    EXPECT_TRUE(sent(program_of(problem_of(1, 6, 3), strategy, 1), true).empty());
}

// A window of one shard: a rank needs its own keys and those of one rank before it.
TEST(WireBytes, HopsThatNobodyNeedsAreNotSent) {
  const Problem problem = problem_of(8, 6, 3, fmt::format("window:{}", kShard));
  for (const char* strategy : {"pass-kv", "pass-q", "bidirectional-ring", "all-gather-kv"}) {
    std::map<int, int> messages;
    const RingProgram program = program_of(problem, strategy, 8);
    for (const RankProgram& rank : program.rank_programs) {
      for (const Op& op : rank.ops) {
        if (op.kind == OpKind::kSend) ++messages[static_cast<int>(op.payload)];
      }
    }
    for (const auto& [payload, count] : messages) EXPECT_EQ(count, 7) << strategy;
  }
}

}  // namespace
}  // namespace ring
