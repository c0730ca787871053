#include "kernels/measured_run.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/memory_model.h"
#include "core/strategy.h"

namespace ring {
namespace {

RingProgram small_program() {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = problem.head_dim_v = 16;
  problem.mask = Mask::causal(96);
  Tuning tuning;
  tuning.block_tokens = 16;
  return plan(problem, tuning);
}

TEST(MeasuredRun, RunsAndChecks) {
  MeasureOptions options;
  options.repeats = 3;
  double done = -1;
  options.on_progress = [&done](double now, std::string_view) {
    EXPECT_GE(now, done);
    done = now;
  };
  const std::atomic<bool> is_interrupted = false;
  const MeasuredRun run = measure_program(small_program(), options, is_interrupted);
  EXPECT_TRUE(run.measurement.is_complete);
  EXPECT_EQ(run.measurement.steps_ps.size(), 3U);
  ASSERT_TRUE(run.verification);
  EXPECT_TRUE(run.verification->is_right()) << run.verification->text();
  EXPECT_GT(done, 0.5);
}

TEST(MeasuredRun, StopsWhenInterrupted) {
  std::atomic<bool> is_interrupted = false;
  MeasureOptions options;
  options.repeats = 1000;
  options.on_progress = [&](double, std::string_view what) {
    if (what == "run 3 of 1000") is_interrupted = true;
  };
  const MeasuredRun run = measure_program(small_program(), options, is_interrupted);
  EXPECT_FALSE(run.measurement.is_complete);
  EXPECT_EQ(run.measurement.steps_ps.size(), 2U);
  EXPECT_FALSE(run.verification);
}

TEST(MeasuredRun, RefusesWhatDoesNotFit) {
  const RingProgram program = small_program();
  const Bytes bytes = program_bytes(program);
  EXPECT_GT(bytes, 0);
  EXPECT_NO_THROW(require_runnable(program, bytes));
  EXPECT_THROW(require_runnable(program, bytes - 1), Error);
}

}  // namespace
}  // namespace ring
