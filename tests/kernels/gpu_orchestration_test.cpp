// Streams, events and exchanges under random delays: right whatever the delays, and only because of
// every single wait.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/strategy.h"
#include "tests/kernels/backward_fixture.h"
#include "tests/kernels/gpu_ring_support.h"

namespace ring::cuda {
namespace {

using testing_support::AllGradients;
using testing_support::delayed;
using testing_support::first_disorder;
using testing_support::gather;
using testing_support::gather_gradients;
using testing_support::oracle;
using testing_support::oracle_gradients;
using testing_support::Output;
using testing_support::relative_rms;

struct Ring {
  const char* strategy;
  int ranks, lanes, depth;
  int64_t blocks_per_message;
  bool is_deterministic;
  Pass pass;
  BackwardMoves moves;
};
constexpr Ring kRings[] = {
    {"pass-kv", 4, 1, 2, 1, false, Pass::kForward, BackwardMoves::kAuto},
    {"pass-kv", 3, 1, 2, 1, false, Pass::kForwardBackward, BackwardMoves::kKeys},
    {"pass-kv", 3, 1, 2, 1, false, Pass::kForwardBackward, BackwardMoves::kQueries},
    {"ulysses", 2, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"pass-kv", 2, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"pass-kv", 3, 2, 3, 1, false, Pass::kForward, BackwardMoves::kAuto},
    {"pass-kv", 4, 1, 2, 1, true, Pass::kForward, BackwardMoves::kAuto},
    {"double-ring:2", 4, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"all-gather-kv", 3, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"all-gather-kv:4", 3, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"pass-q", 3, 1, 2, 1, false, Pass::kForward, BackwardMoves::kAuto},
    {"tree-decode", 3, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"ulysses-ring:2", 4, 1, 2, 0, false, Pass::kForward, BackwardMoves::kAuto},
    {"pass-kv", 3, 2, 3, 1, false, Pass::kForwardBackward, BackwardMoves::kKeys},
    {"double-ring:2", 4, 1, 2, 0, false, Pass::kForwardBackward, BackwardMoves::kKeys},
    {"all-gather-kv", 3, 1, 2, 0, false, Pass::kForwardBackward, BackwardMoves::kQueries},
    {"all-gather-kv:4", 3, 1, 2, 0, false, Pass::kForwardBackward, BackwardMoves::kKeys},
};
/// The first so many run under all seeds.
constexpr int kSeededRings = 4;

Problem problem_of(const Ring& ring) {
  Problem problem;
  problem.batch = 1;
  problem.heads = 4;
  problem.kv_heads = 4;
  problem.head_dim = 4;
  problem.head_dim_v = 6;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::causal(24);
  problem.pass = ring.pass;
  return problem;
}

RingProgram program_of(const Ring& ring) {
  Tuning tuning;
  tuning.strategy = ring.strategy;
  tuning.ranks = ring.ranks;
  tuning.lanes = ring.lanes;
  tuning.pipeline_depth = ring.depth;
  tuning.block_tokens = 4;
  tuning.blocks_per_message = ring.blocks_per_message;
  tuning.is_deterministic = ring.is_deterministic;
  tuning.backward = ring.moves;
  return plan(problem_of(ring), tuning);
}

std::string text_of(const Ring& ring) {
  return fmt::format("{} of {}, pass {}, {}", ring.strategy, ring.ranks,
                     static_cast<int>(ring.pass), name(ring.moves));
}

/// A thousand seeds in shards, rings and carriers taking turns.
class GpuOrchestration : public testing::TestWithParam<int> {};
constexpr int kShards = 8, kSeedsOfShard = 125;

TEST_P(GpuOrchestration, IsRightWhateverTheDelays) {
  const SeededData data(7);
  for (int i = 0; i < kSeededRings; ++i) {
    const Ring& ring = kRings[i];
    const Problem problem = problem_of(ring);
    const RingProgram program = program_of(ring);
    const Output want = oracle(problem, data);
    const bool is_backward = has_backward(ring.pass);
    const AllGradients slopes = is_backward ? oracle_gradients(problem, data) : AllGradients{};
    for (int at = 0; at < kSeedsOfShard; ++at) {
      const int seed = GetParam() * kSeedsOfShard + at;
      if (seed % kSeededRings != i) continue;
      SCOPED_TRACE(fmt::format("{}, seed {}", text_of(ring), seed));
      HostRuntime runtime(delayed(static_cast<uint64_t>(seed)));
      const Carrier carrier = seed / kSeededRings % 2 == 0 ? Carrier::kCopies : Carrier::kExchanges;
      GpuExecutor executor(program, data, runtime, {.carrier = carrier});
      executor.run();
      ASSERT_EQ(first_disorder(program, executor, runtime), "");
      // bf16 output: relative rounding 2^-8 at most.
      ASSERT_LT(relative_rms(gather(executor, problem).out, want.out), 0x1p-8);
      if (!is_backward) continue;
      const AllGradients have = gather_gradients(executor, problem);
      ASSERT_LT(relative_rms(have.dq, slopes.dq), 0x1p-8);
      ASSERT_LT(relative_rms(have.dk, slopes.dk), 0x1p-8);
      ASSERT_LT(relative_rms(have.dv, slopes.dv), 4e-6);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Seeds, GpuOrchestration, testing::Range(0, kShards));

#if !defined(__SANITIZE_THREAD__)  // These runs race on purpose.
class GpuWaits : public testing::TestWithParam<Ring> {};

TEST_P(GpuWaits, NoneCanBeRemoved) {
  const SeededData data(7);
  const RingProgram program = program_of(GetParam());
  for (const Carrier carrier : {Carrier::kCopies, Carrier::kExchanges}) {
    const DevicePlan whole = plan_device(program, carrier);
    const auto waits =
        std::count_if(whole.commands.begin(), whole.commands.end(),
                      [](const Command& it) { return it.kind == CommandKind::kWait; });
    EXPECT_GT(waits, 0);
    for (int wait = 0; wait < waits; ++wait) {
      // Order is what events made, not what happened: no delay is needed to see that one lacks.
      HostRuntime runtime({});
      GpuExecutor executor(program, data, runtime, {.carrier = carrier, .skipped_wait = wait});
      executor.run();
      EXPECT_NE(first_disorder(program, executor, runtime), "")
          << text_of(GetParam()) << ", wait " << wait;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rings, GpuWaits, testing::ValuesIn(kRings));
#endif

}  // namespace
}  // namespace ring::cuda
