#include "core/fit.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <random>

#include "core/cost_model.h"
#include "core/error.h"

namespace ring {
namespace {

std::vector<FitRow> rows_of(const std::vector<double>& parameters, double noise, uint64_t seed,
                            int count) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(0, 6);
  std::normal_distribution<double> error(0, 1);
  std::vector<FitRow> rows;
  for (int i = 0; i < count; ++i) {
    FitRow row{{1}, parameters[0]};
    for (size_t j = 1; j < parameters.size(); ++j) {
      row.features.push_back(std::pow(10, exponent(random)));
      row.seconds += parameters[j] * row.features.back();
    }
    row.seconds *= std::exp(noise * error(random));
    rows.push_back(row);
  }
  return rows;
}

TEST(Fit, RecoversExactParametersOverManyOrdersOfMagnitude) {
  const std::vector<double> truth = {2e-6, 3e-9, 5e-10};
  const LinearFit fit = fit_relative(rows_of(truth, 0, 1, 40));
  for (size_t j = 0; j < truth.size(); ++j)
    EXPECT_NEAR(fit.parameters[j].value / truth[j], 1, 1e-6);
}

TEST(Fit, KeepsParametersAtZeroThatWouldBeNegative) {
  std::vector<FitRow> rows;
  for (int i = 1; i <= 20; ++i)  // seconds = x - 0.2: an unconstrained start would be -0.2.
    rows.push_back({{1, static_cast<double>(i)}, i - 0.2});
  const LinearFit fit = fit_relative(rows);
  EXPECT_EQ(fit.parameters[0].value, 0);
  EXPECT_GT(fit.parameters[1].value, 0.9);
  EXPECT_LT(fit.parameters[1].value, 1);
}

// 200 noisy data sets: an interval from the 5th to the 95th percentile should hold the truth in
// about 90 %; 75 % leaves room for the bias of the bootstrap and for chance.
TEST(Fit, IntervalsHoldTheTruth) {
  const std::vector<double> truth = {1e-5, 2e-9};
  int held = 0;
  constexpr int kSets = 200;
  for (uint64_t seed = 0; seed < kSets; ++seed) {
    const LinearFit fit = fit_relative(rows_of(truth, 0.05, seed, 30));
    const FittedParameter& rate = fit.parameters[1];
    EXPECT_LE(rate.low, rate.value);
    EXPECT_LE(rate.value, rate.high);
    if (rate.low <= truth[1] && truth[1] <= rate.high) ++held;
  }
  EXPECT_GE(held, kSets * 75 / 100);
  EXPECT_LT(held, kSets);
}

TEST(Fit, SameRowsGiveTheSameFit) {
  const auto rows = rows_of({1e-5, 2e-9, 1e-10}, 0.1, 3, 30);
  const LinearFit a = fit_relative(rows), b = fit_relative(rows);
  for (size_t j = 0; j < a.parameters.size(); ++j) {
    EXPECT_EQ(a.parameters[j].value, b.parameters[j].value);
    EXPECT_EQ(a.parameters[j].low, b.parameters[j].low);
    EXPECT_EQ(a.parameters[j].high, b.parameters[j].high);
  }
}

// The optimality conditions of the problem itself: no parameter below 0, slope 0 where it is
// positive and not downhill where it is 0.
RC_GTEST_PROP(FitProperty, SolutionIsOptimal, ()) {
  const auto count = *rc::gen::inRange<size_t>(1, 5);
  std::vector<FitRow> rows;
  for (int i = 0; i < 12; ++i) {
    FitRow row;
    for (size_t j = 0; j < count; ++j)
      row.features.push_back(static_cast<double>(*rc::gen::inRange(0, 100)));
    row.seconds = static_cast<double>(*rc::gen::inRange(1, 100));
    rows.push_back(row);
  }
  const LinearFit fit = fit_relative(rows);
  for (size_t j = 0; j < count; ++j) {
    double slope = 0, size = 0;
    for (const FitRow& row : rows) {
      const double feature = row.features[j] / row.seconds;
      slope += feature * (fit.predict(row.features) / row.seconds - 1);
      size += feature * (1 + fit.predict(row.features) / row.seconds);
    }
    RC_ASSERT(fit.parameters[j].value >= 0);
    RC_ASSERT(slope >= -1e-7 * (1 + size));
    if (fit.parameters[j].value > 0) RC_ASSERT(slope <= 1e-7 * (1 + size));
  }
}

TEST(Fit, TooFewRowsAreRefused) {
  EXPECT_THROW(fit_relative(rows_of({1, 2, 3}, 0, 1, 2)), Error);
  EXPECT_THROW(fit_relative({}), Error);
}

TEST(Fit, JudgesFittedAndHeldOutRows) {
  LinearFit fit;
  fit.parameters = {{2, 2, 2}};
  const std::vector<FitRow> fitted = {{{1}, 2}, {{1}, 1.6}}, held_out = {{{1}, 4}};
  const FitQuality quality = judge(fit, fitted, held_out);
  EXPECT_EQ(quality.fitted_samples, 2);
  EXPECT_NEAR(quality.fitted_worst, 0.25, 1e-12);
  EXPECT_NEAR(quality.fitted_median, 0.125, 1e-12);
  EXPECT_NEAR(quality.held_out_median, 0.5, 1e-12);
}

TEST(Fit, AttendFeaturesAreThoseOfTheCostModel) {
  Problem problem;
  problem.mask = Mask::causal(64);
  problem.kv_heads = 2;
  problem.head_dim = 32;
  problem.head_dim_v = 16;
  Op op;
  op.kind = OpKind::kAttend;
  op.q_end = op.kv_end = 64;
  op.head_end = 8;
  op.visible_pairs = 2080;
  op.active_rows = 64;
  op.edge_rows = 63;
  AttendCost cost;
  double value = 1e-7;
  for (const AttendParameter& parameter : attend_parameters()) cost.*parameter.member = value *= 2;
  const std::vector<double> features = attend_features(problem, op);
  double sum = 0;
  for (size_t j = 0; j < features.size(); ++j)
    sum += features[j] * (cost.*attend_parameters()[j].member);
  EXPECT_NEAR(sum / attend_seconds(cost, problem, op), 1, 1e-12);
}

TEST(Fit, ByteCostTurnsTheIntervalRound) {
  LinearFit fit;
  fit.parameters = {{1e-6, 5e-7, 2e-6}, {1e-9, 5e-10, 2e-9}};
  const ByteCostFit cost = byte_cost(fit);
  EXPECT_DOUBLE_EQ(cost.cost.start_s, 1e-6);
  EXPECT_DOUBLE_EQ(cost.cost.bytes_per_s, 1e9);
  EXPECT_DOUBLE_EQ(cost.bytes_per_s.low, 5e8);
  EXPECT_DOUBLE_EQ(cost.bytes_per_s.high, 2e9);
}

TEST(Fit, QuantilesAreLinearBetweenNeighbours) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(quantile({0, 10}, 0.25), 2.5);
  EXPECT_EQ(quantile({}, 0.5), 0);
  EXPECT_EQ(quantile({7}, 0.9), 7);
}

}  // namespace
}  // namespace ring
