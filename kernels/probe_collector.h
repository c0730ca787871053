// ProbeCollector: gathers the measured runs of probe programs into calibration samples.
#pragma once

#include <map>
#include <vector>

#include "core/calibration.h"
#include "core/fit.h"
#include "core/timeline.h"
#include "kernels/probe_programs.h"

namespace ring {

/// A sample and, where the cost is fitted, what its features are.
struct ProbeSample {
  CalibrationSample sample;
  std::vector<double> features;
  const Problem* problem = nullptr;  ///< Of an attend op, with the op; the features of others do
  const Op* op = nullptr;            ///< not depend on what is still to be found.
};

/// Samples of one probe program. Ops that cost the same (equal features) are one sample, whose
/// value of a run is the mean over them, so that a run that was disturbed counts with its
/// disturbance.
class ProbeCollector {
 public:
  explicit ProbeCollector(const ProbeProgram& probe);

  void add_run(const Timeline& timeline);

  const std::vector<ProbeSample>& samples() const { return samples_; }
  bool is_attention() const { return probe_.program.has_attention; }
  /// Makespans of the runs, in seconds.
  const std::vector<double>& makespans() const { return makespans_; }
  /// Log of each op's duration over the mean of its sample in the same run.
  const std::vector<double>& op_noise() const { return op_noise_; }

 private:
  int32_t sample_for(const Op& op);
  void add_value(int32_t sample, double seconds);

  const ProbeProgram& probe_;
  std::vector<std::vector<int32_t>> sample_of_op_;  ///< By rank and op; -1: not a sample.
  std::map<std::vector<double>, int32_t> by_key_;
  std::vector<ProbeSample> samples_;
  std::vector<std::vector<double>> values_;  ///< Of the run being added, per sample.
  std::vector<double> makespans_, op_noise_;
};

}  // namespace ring
