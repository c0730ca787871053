// Calibration on this machine: not how fast it is, but that what is reported hangs together.
#include "kernels/probes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/cost_model.h"
#include "core/error.h"
#include "core/fit.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "kernels/machine_fit.h"
#include "kernels/probe_collector.h"
#include "kernels/probe_programs.h"
#include "kernels/speed_check.h"

namespace ring {
namespace {

TEST(ProbePrograms, AreSoundOnOneTwoAndFourCores) {
  for (const int cores : {1, 2, 4}) {
    for (const ProbeProgram& probe : probe_programs(cores)) {
      EXPECT_TRUE(check_program(probe.program).empty()) << probe.label;
      EXPECT_FALSE(probe.label.empty());
    }
  }
}

/// A timeline in which every op takes what a known machine says.
Timeline made_timeline(const RingProgram& program, const Machine& truth, double wakeup_s) {
  Timeline timeline;
  timeline.ranks = program.ranks();
  timeline.lanes = program.lanes;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankProgram& at = program.rank_programs[static_cast<size_t>(rank)];
    Picoseconds now_ps = 0;
    for (size_t i = 0; i < at.ops.size(); ++i) {
      const Op& op = at.ops[i];
      Slice slice = slice_of(program, {rank, static_cast<int64_t>(i)});
      slice.posted_ps = slice.start_ps = now_ps;
      double seconds = 0;
      if (op.kind == OpKind::kReceive) {
        slice.start_ps += picoseconds_from_seconds(wakeup_s);
        seconds = byte_seconds(truth.copy, op.bytes, "copy");
      } else if (op.kind != OpKind::kSend) {
        seconds = op_seconds(truth, program.has_attention ? &program.problem : nullptr, op);
      }
      slice.end_ps = slice.start_ps + picoseconds_from_seconds(seconds);
      if (op.kind != OpKind::kSend) now_ps = slice.end_ps;
      timeline.slices.push_back(slice);
    }
  }
  return timeline;
}

Machine known_machine() {
  Machine machine;
  AttendCost cost;
  cost.launch_s = 3e-6;
  cost.per_pair_s = 2e-10;
  cost.per_pair_dim_s = 2e-11;
  cost.per_edge_row_dim_s = 3e-10;
  cost.per_row_dim_s = 8e-10;
  cost.per_far_row_dim_s = 6e-10;
  cost.per_start_row_dim_s = 2e-10;
  cost.per_key_dim_s = 1e-10;
  cost.cache_bytes = (256 << 10) * 1.5 * 1.5 * 1.5 * 1.5 * 1.5 * 1.5 * 1.5;  // One that is tried.
  machine.attend[DType::kF32] = cost;
  cost.per_pair_dim_s = 3e-11;
  machine.attend[DType::kBF16] = machine.attend[DType::kF16] = cost;
  cost.per_far_row_dim_s = cost.cache_bytes = 0;  // Backward, no row is far.
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) machine.backward[dtype] = cost;
  machine.add_bytes_per_s = 7e9;
  machine.delta_bytes_per_s = 6e9;
  machine.copy = {2e-6, 8e9};
  machine.merge_bytes_per_s = 2e10;
  machine.finalize_bytes_per_s = 5e9;
  return machine;
}

TEST(MachineFit, FindsTheMachineThatTheSamplesComeFrom) {
  const Machine truth = known_machine();
  const std::vector<ProbeProgram> probes = probe_programs(2);
  std::vector<ProbeCollector> collectors;
  for (const ProbeProgram& probe : probes) {
    collectors.emplace_back(probe);
    for (int run = 0; run < 3; ++run)
      collectors.back().add_run(made_timeline(probe.program, truth, 4e-5));
  }
  std::vector<const ProbeCollector*> pointers;
  for (const ProbeCollector& collector : collectors) pointers.push_back(&collector);
  Machine machine;
  Calibration calibration;
  fit_machine(pointers, 2, machine, calibration);

  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const AttendParameter& parameter : attend_parameters()) {
      const double expected = truth.attend.at(dtype).*parameter.member;
      EXPECT_NEAR(machine.attend.at(dtype).*parameter.member / expected, 1, 1e-3) << parameter.name;
    }
  }
  EXPECT_NEAR(machine.copy.start_s / truth.copy.start_s, 1, 1e-3);
  EXPECT_NEAR(machine.copy.bytes_per_s / truth.copy.bytes_per_s, 1, 1e-3);
  EXPECT_NEAR(machine.merge_bytes_per_s / truth.merge_bytes_per_s, 1, 1e-3);
  EXPECT_NEAR(machine.finalize_bytes_per_s / truth.finalize_bytes_per_s, 1, 1e-3);
  EXPECT_NEAR(machine.add_bytes_per_s / truth.add_bytes_per_s, 1, 1e-3);
  EXPECT_NEAR(machine.delta_bytes_per_s / truth.delta_bytes_per_s, 1, 1e-3);
  EXPECT_NEAR(machine.backward.at(DType::kF32).per_pair_dim_s /
                  truth.backward.at(DType::kF32).per_pair_dim_s,
              1, 1e-2);
  EXPECT_NEAR(machine.backward.at(DType::kF16).per_start_row_dim_s /
                  truth.backward.at(DType::kF16).per_start_row_dim_s,
              1, 1e-2);
  EXPECT_NEAR(machine.attend_contention, 1, 1e-6);
  EXPECT_NEAR(machine.noise.per_op, 0, 1e-6);
  EXPECT_EQ(machine.processors.size(), 2U);
  for (const auto& [probe, quality] : calibration.fits) {
    EXPECT_LT(quality.fitted_worst, 1e-3) << probe;
    EXPECT_LT(quality.held_out_worst, 1e-3) << probe;
  }
  EXPECT_GT(calibration.fits.at("attend.fp32").held_out_samples, 0);
  EXPECT_GT(calibration.fits.at("backward.bf16").held_out_samples, 0);
}

TEST(Calibrate, GivesAMachineThatStatesEveryCost) {
  CalibrationOptions options;
  options.budget_s = 0;
  options.least_rounds = 1;
  double last = 0;
  options.on_progress = [&last](const CalibrationProgress& progress) {
    EXPECT_GE(progress.done, 0);
    EXPECT_LE(progress.done, 1);
    last = progress.elapsed_s;
  };
  const CalibrationResult result = calibrate(options);
  EXPECT_TRUE(result.is_complete);
  EXPECT_TRUE(result.machine.is_calibrated);
  EXPECT_GT(last, 0);
  const Machine& machine = result.machine;
  EXPECT_GT(machine.copy.bytes_per_s, 0);
  EXPECT_GT(machine.merge_bytes_per_s, 0);
  EXPECT_GT(machine.finalize_bytes_per_s, 0);
  EXPECT_GT(machine.wakeup_s, 0);
  EXPECT_GT(machine.add_bytes_per_s, 0);
  EXPECT_GT(machine.delta_bytes_per_s, 0);
  EXPECT_GE(machine.attend_contention, 1);
  Problem problem;
  problem.mask = Mask::causal(256);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    problem.dtype = dtype;
    Tuning tuning;
    tuning.ranks = 1;
    const RingProgram program = plan(problem, tuning);
    EXPECT_GT(op_seconds(machine, &problem, program.rank_programs[0].ops[0]), 0);
    Op backward = program.rank_programs[0].ops[0];
    backward.kind = OpKind::kBackward;
    EXPECT_GT(op_seconds(machine, &problem, backward), 0);
  }
  for (const CalibrationSample& sample : result.calibration.samples)
    EXPECT_GE(sample.seconds.size(), 1U);
}

TEST(Calibrate, KeepsWhatWasMeasuredWhenInterrupted) {
  std::atomic<bool> interrupt{false};
  CalibrationOptions options;
  options.interrupt = &interrupt;
  int probes = 0;
  options.on_progress = [&](const CalibrationProgress&) { interrupt = ++probes > 3; };
  const CalibrationResult result = calibrate(options);
  EXPECT_FALSE(result.is_complete);
  EXPECT_FALSE(result.machine.is_calibrated);
  EXPECT_FALSE(result.calibration.samples.empty());
  EXPECT_TRUE(result.machine.attend.empty());
}

TEST(SpeedCheck, TakesAboutTheSameTimeAgainAndKnowsItsCalibration) {
  SpeedCheck check;
  const double first = check.measure(), second = check.measure();
  EXPECT_GT(first, 0);
  EXPECT_LT(std::fabs(std::log(first / second)), std::log(20.0));  // Other work may run.
  Calibration calibration;
  EXPECT_EQ(calibrated_speed_check_s(calibration), 0);
  CalibrationSample sample;
  sample.probe = kSpeedProbe;
  sample.seconds = {0.003, 0.001, 0.002};
  calibration.samples = {sample};
  EXPECT_EQ(calibrated_speed_check_s(calibration), 0.002);
}

}  // namespace
}  // namespace ring
