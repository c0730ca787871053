#include "sim/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "core/strategy.h"
#include "sim/parallel.h"
#include "sim/reference_scenarios.h"

namespace ring {
namespace {

Problem small_problem() {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = problem.head_dim_v = 32;
  problem.mask = Mask::full(1000);
  return problem;
}

Machine small_machine() {
  Machine machine = ring_of_gpus(8);
  machine.attend[DType::kF32] = {.launch_s = 5e-6, .per_pair_s = 1e-12};
  machine.merge_bytes_per_s = 1e12;
  return machine;
}

TuningGrid small_grid() {
  TuningGrid grid;
  grid.base.partition = "contiguous";
  grid.ranks = {2, 4};
  grid.block_tokens = {32, 64, 128};
  grid.pipeline_depths = {1, 2};
  return grid;
}

TEST(Sweep, ExpandsEveryCombinationOnceLastFastest) {
  const std::vector<Tuning> tunings = expand(small_grid());
  ASSERT_EQ(tunings.size(), 12U);
  EXPECT_EQ(tunings[1].pipeline_depth, 2);
  EXPECT_EQ(tunings[1].block_tokens, 32);
  EXPECT_EQ(tunings[2].block_tokens, 64);
  EXPECT_EQ(tunings[6].ranks, 4);
  EXPECT_EQ(tunings[0].partition, "contiguous");
  EXPECT_EQ(expand({}).size(), 1U);
}

TEST(Sweep, PointsEqualSingleSimulationsWhateverTheThreads) {
  const std::vector<Tuning> tunings = expand(small_grid());
  for (const int threads : {1, 3}) {
    SweepOptions options;
    options.threads = threads;
    size_t reported = 0;
    options.on_point = [&](size_t, const SweepPoint&) { ++reported; };
    const auto points = sweep(small_problem(), tunings, small_machine(), options);
    ASSERT_EQ(points.size(), tunings.size());
    EXPECT_EQ(reported, tunings.size());
    for (size_t i = 0; i < points.size(); ++i) {
      // One buffer on a ring of four cannot finish; that loses no other point.
      const bool is_stuck = tunings[i].ranks == 4 && tunings[i].pipeline_depth == 1;
      EXPECT_EQ(points[i].is_done, !is_stuck) << i;
      EXPECT_EQ(points[i].error.empty(), !is_stuck) << i;
      if (is_stuck) continue;
      EXPECT_EQ(points[i].makespan_ps,
                simulate(plan(small_problem(), tunings[i]), small_machine()).makespan_ps);
      EXPECT_GT(points[i].rank_bytes, 0);
    }
  }
}

TEST(Sweep, BestIsTheFastestThatFits) {
  std::vector<SweepPoint> points(4);
  EXPECT_FALSE(best_of(points));
  for (size_t i = 0; i < 4; ++i) points[i].makespan_ps = 10 - static_cast<Picoseconds>(i);
  points[0].is_done = points[1].is_done = points[2].is_done = true;
  points[2].fits = false;
  EXPECT_EQ(best_of(points), 1U);
}

TEST(Sweep, StopsBetweenPoints) {
  std::stop_source source;
  SweepOptions options;
  options.threads = 1;
  options.stop = source.get_token();
  options.on_point = [&](size_t index, const SweepPoint&) {
    if (index == 3) source.request_stop();
  };
  const auto points = sweep(small_problem(), expand(small_grid()), small_machine(), options);
  EXPECT_TRUE(points[1].is_done);
  EXPECT_FALSE(points[11].is_done);
  EXPECT_TRUE(points[11].error.empty()) << "not reached is not failed";
}

TEST(ParallelFor, DoesEverythingOnceAndPassesOnTheFirstFailure) {
  std::vector<std::atomic<int>> done(1000);
  EXPECT_TRUE(parallel_for(1000, 4, {}, [&](size_t i) { ++done[i]; }));
  for (const auto& count : done) EXPECT_EQ(count, 1);
  EXPECT_TRUE(parallel_for(0, 4, {}, [](size_t) { FAIL(); }));
  EXPECT_THROW(parallel_for(10, 2, {},
                            [](size_t i) {
                              if (i == 5) throw std::runtime_error("five");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace ring
