// Programs of published rows: what travels, what is left of them for all-to-alls, and that rows
// that nobody published are predicted sensibly.
#include <gtest/gtest.h>

#include "core/error.h"
#include "experiments/validation/row_predict.h"
#include "experiments/validation/row_program.h"

namespace ring::testing {
namespace {

constexpr int64_t kTokens = 65536, kHeads = 16, kKvHeads = 8, kDim = 128, kElementBytes = 2;

RowCase row(int ring, int ulysses, const std::string& partition = "zigzag") {
  RowCase row;
  row.machine = "h100-sxm-8";
  row.stack = "ring-flash-attention";
  row.ring = ring;
  row.ulysses = ulysses;
  row.gpus = ring * ulysses;
  row.partition = partition;
  row.problem.heads = kHeads;
  row.problem.kv_heads = kKvHeads;
  row.problem.head_dim = row.problem.head_dim_v = kDim;
  row.problem.dtype = DType::kBF16;
  row.problem.mask = Mask::causal(kTokens);
  return row;
}

Bytes sent(const RingProgram& program, int rank, bool gradients) {
  Bytes bytes = 0;
  for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
    if (op.kind == OpKind::kSend && is_gradient(op.payload) == gradients) bytes += op.bytes;
  }
  return bytes;
}

TEST(RowProgram, GradientsTravelAsWideAsTheStackSendsThem) {
  const RowCase four = row(4, 1);
  const Bytes shard = 2 * kTokens / 4 * kKvHeads * kDim * kElementBytes;
  const auto gradients = [&](const char* stack) {
    return sent(ring_program(four, find_stack(stack), Pass::kBackward), 1, true);
  };
  // K and V make three hops, dK and dV three more and are home then.
  const RingProgram fp32 = ring_program(four, find_stack("ring-flash-attention"), Pass::kBackward);
  EXPECT_EQ(sent(fp32, 1, false), 3 * shard);
  EXPECT_EQ(gradients("ring-flash-attention"), 3 * 2 * shard);
  EXPECT_EQ(gradients("transformer-engine"), 3 * shard);
  // The query side travels instead: dQ of twice as many heads, half of K and V each.
  EXPECT_EQ(gradients("burst"), 3 * shard * (kHeads / kKvHeads) / 2);
}

TEST(RowProgram, AllToAllsMoveEveryTensorOnceButForTheOwnShare) {
  for (const auto& [ring, ulysses] : {std::pair(1, 8), {2, 4}, {4, 2}}) {
    RingProgram program = exchange_program(row(ring, ulysses));
    keep_exchange_only(ulysses, program);
    // Q, K, V and the output of the own tokens, but what stays on the GPU.
    const Bytes tensors = kTokens / 8 * (2 * kHeads + 2 * kKvHeads) * kDim * kElementBytes;
    EXPECT_EQ(sent(program, 3, false), tensors / ulysses * (ulysses - 1)) << ulysses;
    for (const Op& op : program.rank_programs[3].ops) {
      EXPECT_TRUE(op.kind == OpKind::kSend || op.kind == OpKind::kReceive || op.fixed_ps == 0);
    }
  }
}

TEST(RowProgram, StripedGroupsExchangeAsZigzagOnes) {
  const RingProgram striped = exchange_program(row(4, 2, "striped"));
  EXPECT_EQ(striped.tuning.partition, "zigzag");
  EXPECT_EQ(ring_program(row(4, 2, "striped"), find_stack("own"), Pass::kForward).tuning.partition,
            "striped");
}

TEST(RowProgram, SharedKvHeadsAreCopiedAndUnevenOnesRefused) {
  RowCase shared = row(1, 8);
  shared.problem.kv_heads = 2;
  EXPECT_EQ(exchange_program(shared).tuning.strategy, "ulysses:repeat");
  shared.problem.heads = 24;
  shared.problem.kv_heads = 12;
  EXPECT_THROW(exchange_program(shared), Error);
}

struct Variation {
  const char* machine;
  double peak_flops;  ///< Of 16-bit matrix products, datasheets.
  int ring, ulysses;
};

/// Rows that nobody published: longer ones take longer, none is faster than the hardware, and the
/// backward pass takes longer than the forward pass.
TEST(PredictRow, VariationsAreSensible) {
  MachineShelf shelf;
  for (const Variation& v : {Variation{"a100-sxm-8", 312e12, 8, 1},
                             {"h100-sxm-8", 990e12, 2, 4},
                             {"h800-sxm-8", 990e12, 1, 4},
                             {"l20-8", 119.5e12, 4, 2},
                             {"a100-pcie-4", 312e12, 4, 1},
                             {"a800-sxm-32-ib", 312e12, 32, 1},
                             {"h100-sxm-16-ib", 990e12, 4, 4}}) {
    double longest_s = 0;
    for (const int64_t tokens : {1024, 16384, 262144, 1048576}) {
      RowCase varied = row(v.ring, v.ulysses);
      varied.machine = v.machine;
      varied.problem.mask = Mask::causal(tokens);
      const double forward_s = predict_row(varied, shelf).seconds;
      varied.pass = TimedPass::kBackward;
      const double backward_s = predict_row(varied, shelf).seconds;
      varied.pass = TimedPass::kBoth;
      const double both_s = predict_row(varied, shelf).seconds;
      EXPECT_GT(forward_s, longest_s) << v.machine << " " << tokens;
      EXPECT_GT(backward_s, forward_s) << v.machine << " " << tokens;
      // One program may begin the backward pass on ranks that are done early.
      EXPECT_NEAR(both_s, forward_s + backward_s, 0.1 * both_s) << v.machine << " " << tokens;
      const double n = static_cast<double>(tokens);
      EXPECT_LT(2 * n * n * kHeads * kDim / varied.gpus / forward_s, v.peak_flops)
          << v.machine << " " << tokens;
      longest_s = forward_s;
    }
  }
}

}  // namespace
}  // namespace ring::testing
