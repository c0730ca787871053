// Every strategy and both passes on the executor of GPUs, over the host runtime, against the
// oracle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.h"
#include "core/strategy.h"
#include "tests/kernels/backward_fixture.h"
#include "tests/kernels/gpu_ring_support.h"

namespace ring::cuda {
namespace {

using testing_support::AllGradients;
using testing_support::first_disorder;
using testing_support::gather;
using testing_support::gather_gradients;
using testing_support::oracle;
using testing_support::oracle_gradients;
using testing_support::Output;

// All dimensions differ from one another, and no length divides.
Problem problem_of(const std::string& mask, int64_t heads = 6, int64_t kv_heads = 3) {
  Problem problem;
  problem.batch = 2;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.head_dim = 24;
  problem.head_dim_v = 17;
  problem.dtype = DType::kF16;
  problem.mask = Mask::parse(mask, 47);
  return problem;
}

Tuning tuning_of(const std::string& strategy, int ranks) {
  Tuning tuning;
  tuning.strategy = strategy;
  tuning.ranks = ranks;
  tuning.block_tokens = 5;
  tuning.blocks_per_message = ranks % 2;
  return tuning;
}

// The output is stored in fp16, with a relative rounding of 2^-11 at most.
void expect_output(const Output& have, const Output& want) {
  testing_support::expect_output(have, want, 0x1p-11, 2e-5);
}

// The largest error is that of the stored output in delta, as on the CPU (backward_test.cpp).
void expect_gradients(const AllGradients& have, const AllGradients& want) {
  testing_support::expect_gradients(have, want, 0x1p-11, 4e-6);
}

struct Way {
  const char* strategy;
  int ranks;
  int64_t heads, kv_heads;
};

constexpr Way kWays[] = {
    {"pass-kv", 3, 6, 3},        {"multi-ring:2", 5, 6, 3},    {"double-ring:2", 4, 6, 3},
    {"all-gather-kv", 3, 6, 3},  {"pass-q", 3, 6, 3},          {"bidirectional-ring", 4, 6, 3},
    {"tree-decode", 4, 6, 3},    {"ulysses", 3, 6, 3},         {"ulysses", 4, 8, 4},
    {"ulysses-ring:2", 4, 8, 4}, {"tensor-parallel", 3, 6, 3}, {"flash", 1, 6, 3},
};

TEST(GpuStrategies, OutputsEqualTheOracle) {
  const SeededData data(21);
  for (const Way& way : kWays) {
    for (const char* mask : {"causal", "window:13", "docs:0,9,9,10,30,47", "decode:7"}) {
      const Problem problem = problem_of(mask, way.heads, way.kv_heads);
      const Output want = oracle(problem, data);
      Tuning tuning = tuning_of(way.strategy, way.ranks);
      if (mask[0] == 'w' && std::string(way.strategy) != "flash") tuning.partition = "striped:3";
      const RingProgram program = plan(problem, tuning);
      for (const Carrier carrier : {Carrier::kCopies, Carrier::kExchanges}) {
        SCOPED_TRACE(fmt::format("{} of {} {} {}", way.strategy, way.ranks, mask,
                                 carrier == Carrier::kCopies ? "copies" : "exchanges"));
        HostRuntime runtime({.devices = 2});
        GpuExecutor executor(program, data, runtime, {.carrier = carrier});
        testing_support::run_twice_in_order(program, executor, runtime);
        expect_output(gather(executor, problem), want);
      }
    }
  }
}

TEST(GpuStrategies, GradientsEqualTheOracle) {
  const SeededData data(22);
  for (const char* mask : {"full", "causal", "window:13", "docs:0,9,9,10,30,47"}) {
    for (const Way& way : kWays) {
      if (std::string(way.strategy) == "tree-decode") continue;  // It is for inference.
      Problem problem = problem_of(mask, way.heads, way.kv_heads);
      const AllGradients want = oracle_gradients(problem, data);
      for (const Pass pass : {Pass::kForwardBackward, Pass::kBackward}) {
        problem.pass = pass;
        for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
          Tuning tuning = tuning_of(way.strategy, way.ranks);
          tuning.backward = moves;
          const RingProgram program = plan(problem, tuning);
          const bool is_even = (way.ranks + static_cast<int>(moves)) % 2 == 0;
          const Carrier carrier = is_even ? Carrier::kCopies : Carrier::kExchanges;
          SCOPED_TRACE(fmt::format("{} of {} {} {} pass {}", way.strategy, way.ranks, mask,
                                   name(moves), static_cast<int>(pass)));
          HostRuntime runtime({.devices = 2});
          GpuExecutor executor(program, data, runtime, {.carrier = carrier});
          // Sums begin anew in every run.
          for (int run = 0; run < 2; ++run) executor.run();
          EXPECT_EQ(first_disorder(program, executor, runtime), "");
          expect_gradients(gather_gradients(executor, problem), want);
        }
      }
    }
  }
}

TEST(GpuStrategies, NaiveAttentionIsRefused) {
  const RingProgram program = plan(problem_of("causal"), tuning_of("naive", 1));
  const SeededData data(1);
  HostRuntime runtime({});
  EXPECT_THROW(GpuExecutor(program, data, runtime), Error);
}

// Heads that are finalized elsewhere than their rows live cannot be gathered from processes.
TEST(GpuStrategies, SeveralProcessesRunWhatFinalizesAtHome) {
  const SeededData data(1);
  GpuOptions options{.carrier = Carrier::kExchanges, .devices = {0, -1}};
  for (const char* strategy : {"ulysses", "tensor-parallel"}) {
    const RingProgram program = plan(problem_of("causal", 4, 2), tuning_of(strategy, 2));
    HostRuntime runtime({});
    try {
      GpuExecutor(program, data, runtime, options);
      FAIL() << strategy;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUnavailable);
      EXPECT_NE(std::string(error.what()).find(strategy), std::string::npos) << error.what();
      EXPECT_NE(error.hint().find("without mpirun"), std::string::npos) << error.hint();
    }
  }
}

}  // namespace
}  // namespace ring::cuda
