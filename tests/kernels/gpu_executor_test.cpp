// Rings on devices without a device: plan, streams, events and exchanges over the host runtime.
#include "kernels/cuda/gpu_executor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/program_text.h"
#include "kernels/cuda/backward.h"
#include "kernels/cuda/host_kernels.h"
#include "kernels/cuda/host_runtime.h"
#include "kernels/cuda/rank_tensors.h"
#include "kernels/cuda/state_kernels.h"
#include "kernels/simt/host_lane.h"
#include "tests/kernels/backward_fixture.h"
#include "tests/kernels/executor_fixture.h"
#include "tests/kernels/gpu_forward_inl.h"
#include "tests/kernels/gpu_ring_support.h"

namespace ring::cuda {
namespace {

using testing_support::delayed;
using testing_support::first_disorder;
using testing_support::gather;
using testing_support::oracle;
using testing_support::Output;

Problem problem_of(int64_t tokens, const std::string& mask = "causal") {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 8;
  problem.head_dim_v = 6;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::parse(mask, tokens);
  return problem;
}

Tuning tuning_of(int ranks, const std::string& strategy = "pass-kv") {
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.block_tokens = 8;
  tuning.blocks_per_message = 1;
  return tuning;
}

// bf16 output: relative rounding 2^-8 at most, so the relative RMS stays below it.
void expect_right(const Output& have, const Output& want) {
  testing_support::expect_output(have, want, 0x1p-8, 1e-4);
}

struct Ring {
  const char* strategy;
  int ranks, lanes, depth;
  int64_t blocks_per_message;
  bool is_deterministic;
};
constexpr Ring kRings[] = {
    {"pass-kv", 1, 1, 2, 1, false},         {"pass-kv", 2, 1, 2, 0, false},
    {"pass-kv", 3, 2, 3, 1, false},         {"pass-kv", 4, 1, 2, 1, true},
    {"double-ring:2", 4, 1, 2, 0, false},   {"all-gather-kv", 3, 1, 2, 0, false},
    {"all-gather-kv:2", 3, 1, 1, 1, false},
};

TEST(GpuExecutor, StrategiesMasksAndCarriersMatchTheOracle) {
  const SeededData data(3);
  for (const char* mask : {"causal", "window:13", "docs:0,11,30,50"}) {
    const Problem problem = problem_of(50, mask);
    const Output want = oracle(problem, data);
    for (const Ring& ring : kRings) {
      Tuning tuning = tuning_of(ring.ranks, ring.strategy);
      tuning.lanes = ring.lanes;
      tuning.pipeline_depth = ring.depth;
      tuning.blocks_per_message = ring.blocks_per_message;
      tuning.is_deterministic = ring.is_deterministic;
      const RingProgram program = plan(problem, tuning);
      for (const Carrier carrier : {Carrier::kCopies, Carrier::kExchanges}) {
        SCOPED_TRACE(fmt::format("{} {} ranks {}", mask, ring.ranks, ring.strategy));
        HostRuntime runtime({.devices = 2});
        GpuExecutor executor(program, data, runtime, {.carrier = carrier});
        testing_support::run_twice_in_order(program, executor, runtime);
        expect_right(gather(executor, problem), want);
      }
    }
  }
}

// One process a rank, each with a runtime of its own; they meet in exchanges alone.
TEST(GpuOrchestration, ProcessesMeetInExchanges) {
  const Problem problem = problem_of(40);
  const SeededData data(9);
  const RingProgram program = plan(problem, tuning_of(3));
  const Output want = oracle(problem, data);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const auto network = make_host_network();
    std::vector<std::thread> processes;
    std::vector<double> errors(3);
    for (int rank = 0; rank < 3; ++rank) {
      processes.emplace_back([&, rank] {
        HostRuntimeOptions options = delayed(seed * 10 + static_cast<uint64_t>(rank));
        options.network = network;
        HostRuntime runtime(options);
        GpuOptions mine{.carrier = Carrier::kExchanges, .devices = {-1, -1, -1}};
        mine.devices[static_cast<size_t>(rank)] = 0;
        GpuExecutor executor(program, data, runtime, mine);
        executor.run();
        for (int64_t position = 0; position < 40; ++position) {
          bool is_mine = false;
          int64_t offset = 0;
          for (const AffineRange& range : program.partition.shard(rank)) {
            offset = position - range.begin;
            is_mine = is_mine || (offset >= 0 && offset % range.stride == 0 &&
                                  offset / range.stride < range.count);
          }
          if (!is_mine) continue;
          std::vector<float> out(24), lse(4);
          executor.read_output(1, position, out, lse);
          for (size_t i = 0; i < out.size(); ++i) {
            const size_t at = (40 + static_cast<size_t>(position)) * 24 + i;
            const double error = std::fabs(static_cast<double>(out[i]) - want.out[at]);
            errors[static_cast<size_t>(rank)] = std::max(errors[static_cast<size_t>(rank)], error);
          }
        }
      });
    }
    for (std::thread& process : processes) process.join();
    for (const double error : errors) EXPECT_LT(error, 0x1p-6);  // Values of at most about 3.
  }
}

TEST(GpuExecutor, EagerMessagesDoNotWaitForTheirReceivers) {
  // Both ranks send before they receive, in one lane: only eager messages can do that.
  const RingProgram program = parse_program(
      "ranks 2\nlanes 1\n"
      "r0 L0 send to=1 msg=0 bytes=64 eager\n"
      "r0 L0 receive from=1 msg=0 bytes=64 buffer=0\n"
      "r0 L0 compute time=100us\n"
      "r0 L0 copy bytes=64\n"
      "r1 L0 send to=0 msg=0 bytes=64 eager\n"
      "r1 L0 receive from=0 msg=0 bytes=64 buffer=0\n");
  const SeededData data(1);
  HostRuntime runtime(delayed(1));
  GpuExecutor executor(program, data, runtime);
  EXPECT_EQ(executor.run().slices.size(), 6U);
  EXPECT_EQ(first_disorder(program, executor, runtime), "");
  EXPECT_THROW(GpuExecutor(program, data, runtime, {.carrier = Carrier::kExchanges}), Error);
}

TEST(GpuExecutor, TransfersSayWhenTheyWerePosted) {
  const RingProgram program = parse_program(
      "ranks 2\nlanes 2\n"
      "r0 L0 compute time=5ms\n"
      "r0 L1 send to=1 msg=0 bytes=64 after=r0:0\n"
      "r1 L1 receive from=0 msg=0 bytes=64 buffer=0\n");
  const SeededData data(1);
  HostRuntime runtime({});
  GpuExecutor executor(program, data, runtime);
  const Timeline& timeline = executor.run();
  const Slice& receive = timeline.slices.back();
  ASSERT_EQ(receive.kind, OpKind::kReceive);
  EXPECT_EQ(receive.posted_ps, 0);
  EXPECT_GE(receive.start_ps, 5'000'000'000);
}

// The real kernels, emulated, under the real orchestration.
void run_emulated(const KernelCall& call) {
  using simt::HostLane;
  simt::LaunchOptions options;
  if (const auto* attend = std::get_if<AttendCall>(&call)) {
    using Config = test::F64Small;
    options.shape = forward_shape<Config>(attend->params, attend->heads, attend->batch);
    simt::launch(options, [&](HostLane& lane) { Forward<Config>::run(lane, attend->params); });
  } else if (const auto* last = std::get_if<FinalizeCall>(&call)) {
    options.shape = state_shape(last->params.rows, last->heads, last->batch, last->params.dim_v);
    simt::launch(options, [&](HostLane& lane) { finalize<simt::Bf16>(lane, last->params); });
  } else if (const auto* merge = std::get_if<MergeCall>(&call)) {
    options.shape =
        state_shape(merge->params.rows, merge->heads, merge->batch, merge->params.dim_v);
    simt::launch(options, [&](HostLane& lane) { merge_state(lane, merge->params); });
  } else if (const auto* backward = std::get_if<BackwardCall>(&call)) {
    using Config = BackwardConfig<simt::Bf16, 64, 64, 32, 32, 2>;
    const BackwardParams& p = backward->params;
    options.shape = backward_rows_shape<Config>(p, backward->heads, backward->batch);
    simt::launch(options, [&](HostLane& lane) { BackwardRows<Config>::run(lane, p); });
    options.shape = backward_keys_shape<Config>(p, backward->heads / p.group, backward->batch);
    simt::launch(options, [&](HostLane& lane) { BackwardKeys<Config>::run(lane, p); });
  } else if (const auto* delta = std::get_if<DeltaCall>(&call)) {
    options.shape = delta_shape(delta->params.rows, delta->heads, delta->batch);
    simt::launch(options, [&](HostLane& lane) { row_delta<simt::Bf16>(lane, delta->params); });
  } else if (const auto* add = std::get_if<AddCall>(&call)) {
    options.shape = convert_shape(add->params.count * add->params.rows);
    simt::launch(options, [&](HostLane& lane) { add_all(lane, add->params); });
  } else if (const auto* normal = std::get_if<NormalizeCall>(&call)) {
    options.shape = state_shape(normal->params.rows, normal->heads, normal->batch, 64);
    simt::launch(options, [&](HostLane& lane) { normalize_state(lane, normal->params); });
  } else if (const auto* whole = std::get_if<CompleteCall>(&call)) {
    options.shape = state_shape(whole->params.rows, whole->heads, whole->batch, 64);
    simt::launch(options, [&](HostLane& lane) { complete_state(lane, whole->params); });
  } else {
    run_on_host(call);
  }
}

// Both passes of a ring, and partial results on their way, by the kernels that a GPU would run.
TEST(GpuExecutor, BothPassesOfTheRealKernelsMatchTheOracle) {
  Problem problem = problem_of(70, "causal");
  problem.head_dim = problem.head_dim_v = 64;
  problem.pass = Pass::kForwardBackward;
  const SeededData data(6);
  const auto want = testing_support::oracle_gradients(problem, data);
  for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    Tuning tuning = tuning_of(2);
    tuning.block_tokens = 20;
    tuning.backward = moves;
    const RingProgram program = plan(problem, tuning);
    HostRuntimeOptions options;
    options.kernels = run_emulated;
    HostRuntime runtime(options);
    GpuExecutor executor(program, data, runtime);
    executor.run();
    const auto have = testing_support::gather_gradients(executor, problem);
    // P, dS and the output are rounded to bf16.
    EXPECT_LT(testing_support::relative_rms(have.dq, want.dq), 2 * 0x1p-8);
    EXPECT_LT(testing_support::relative_rms(have.dk, want.dk), 2 * 0x1p-8);
    EXPECT_LT(testing_support::relative_rms(have.dv, want.dv), 2 * 0x1p-8);
  }
}

/// Weights and output are rounded to bf16.
void expect_real_kernels_match(const Problem& problem, const Tuning& tuning, const DataSource& data,
                               const Output& want, HostRuntimeOptions options) {
  const RingProgram program = plan(problem, tuning);
  options.kernels = run_emulated;
  HostRuntime runtime(options);
  GpuExecutor executor(program, data, runtime);
  executor.run();
  const Output have = gather(executor, problem);
  EXPECT_LT(testing_support::relative_rms(have.out, want.out), 2 * 0x1p-8);
  for (size_t i = 0; i < want.lse.size(); ++i) EXPECT_NEAR(have.lse[i], want.lse[i], 1e-4);
}

TEST(GpuExecutor, PartialResultsOfTheRealKernelsMatchTheOracle) {
  Problem problem = problem_of(50, "causal");
  problem.head_dim = problem.head_dim_v = 64;
  const SeededData data(7);
  const Output want = oracle(problem, data);
  for (const char* strategy : {"pass-q", "ulysses"}) {
    Tuning tuning = tuning_of(2, strategy);
    tuning.block_tokens = 20;
    expect_real_kernels_match(problem, tuning, data, want, {});
  }
}

TEST(GpuExecutor, RingsOfTheRealKernelsMatchTheOracle) {
  Problem problem = problem_of(90, "causal");
  problem.head_dim = problem.head_dim_v = 64;
  const SeededData data(5);
  const Output want = oracle(problem, data);
  for (const bool is_deterministic : {false, true}) {
    Tuning tuning = tuning_of(3);
    tuning.block_tokens = 16;
    tuning.is_deterministic = is_deterministic;
    expect_real_kernels_match(problem, tuning, data, want, delayed(1));
  }
}

TEST(GpuExecutor, HeadsOfAPartOfAKvHeadAreCalledByThemselves) {
  const Problem problem = problem_of(8, "full");
  RingProgram program = plan(problem, tuning_of(1));
  std::vector<Op>& ops = program.rank_programs[0].ops;
  const SeededData data(2);
  HostRuntime runtime({});
  RankTensors tensors(program, 0, data, runtime, 0);
  Op op = ops.front();
  op.head_begin = 1;
  const std::vector<KernelCall> calls = tensors.calls(op);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(std::get<AttendCall>(calls[0]).heads, 1);
  EXPECT_EQ(std::get<AttendCall>(calls[1]).heads, 2);
  op.head_begin = 0;
  EXPECT_EQ(tensors.calls(op).size(), 1U);
}

TEST(GpuExecutor, RefusesWhatNoKernelCanDo) {
  const SeededData data(1);
  HostRuntime runtime({});
  Problem problem = problem_of(32);
  problem.dtype = DType::kF32;
  const RingProgram wide = plan(problem, tuning_of(2));
  EXPECT_THROW(GpuExecutor(wide, data, runtime), Error);
  problem.dtype = DType::kBF16;
  problem.scale = -1;
  const RingProgram negative = plan(problem, tuning_of(2));
  EXPECT_THROW(GpuExecutor(negative, data, runtime), Error);
}

}  // namespace
}  // namespace ring::cuda
