// Rounds of measured runs: how many count, what slow cores do to them, and Ctrl-C.
#include "experiments/measurement_rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/strategy.h"

namespace ring {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

RingProgram tiny_program(int ranks) {
  Problem problem;
  problem.heads = problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 16;
  problem.mask = Mask::full(64);
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.block_tokens = 16;
  return plan(problem, tuning);
}

class MeasurementRoundsTest : public ::testing::Test {
 protected:
  Steadiness run(const RoundsOptions& options) {
    MeasurementRounds rounds(options, is_interrupted_);
    rounds.add(first_, data_);
    rounds.add(second_, data_);
    rounds.run([&](size_t, double) { ++batches_seen_; });
    for (const size_t program : {0, 1}) {
      const Measurement& measurement = rounds.measurement(program);
      EXPECT_TRUE(measurement.is_complete);
      EXPECT_EQ(measurement.steps_ps.size(), static_cast<size_t>(options.repeats));
      EXPECT_THAT(measurement.steps_ps, Contains(measurement.timeline.makespan_ps()));
    }
    return rounds.steadiness();
  }

  const RingProgram first_ = tiny_program(1), second_ = tiny_program(2);
  const SeededData data_{1};
  std::atomic<bool> is_interrupted_ = false;
  int batches_seen_ = 0;
};

TEST_F(MeasurementRoundsTest, EveryProgramGetsAllItsRunsAlsoWhenTheyDoNotDivide) {
  const Steadiness steadiness = run({.repeats = 5, .runs_per_round = 2});
  EXPECT_EQ(batches_seen_, 6);
  EXPECT_EQ(steadiness.batches, 6);
  EXPECT_FALSE(steadiness.is_checked);
  EXPECT_THAT(describe(steadiness), IsEmpty());
}

TEST_F(MeasurementRoundsTest, CoresAsFastAsCalibratedNeedNoSecondTry) {
  const Steadiness steadiness = run({.repeats = 2, .calibrated_check_s = 1e3});
  EXPECT_TRUE(steadiness.is_checked);
  EXPECT_EQ(steadiness.made_again, 0);
  EXPECT_EQ(steadiness.kept_slow, 0);
}

TEST_F(MeasurementRoundsTest, SlowCoresMeanRunsAgainUntilPatienceEndsAndThenItIsSaid) {
  const Steadiness steadiness = run({.repeats = 2, .calibrated_check_s = 1e-9, .patience_s = 0.5});
  EXPECT_EQ(steadiness.kept_slow, 2);
  EXPECT_GT(steadiness.slowest_ratio, 2);
  EXPECT_THAT(describe(steadiness), HasSubstr("2 had to be kept"));
}

TEST_F(MeasurementRoundsTest, AnInterruptLeavesWhatIsDoneAndMarksItIncomplete) {
  MeasurementRounds rounds({.repeats = 4, .runs_per_round = 1}, is_interrupted_);
  rounds.add(first_, data_);
  rounds.add(second_, data_);
  rounds.run([&](size_t, double) { is_interrupted_ = ++batches_seen_ == 3; });
  EXPECT_FALSE(rounds.measurement(0).is_complete);
  EXPECT_FALSE(rounds.measurement(1).is_complete);
  EXPECT_EQ(rounds.measurement(0).steps_ps.size(), 1u);
  EXPECT_EQ(rounds.measurement(1).steps_ps.size(), 1u);
}

}  // namespace
}  // namespace ring
