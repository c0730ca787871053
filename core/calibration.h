// Calibration: what was measured to make a machine profile, kept beside what was fitted to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ring {

/// One point that a probe measured, with all its repeats.
struct CalibrationSample {
  std::string probe;                          ///< "attend", "copy", "transfer", "merge", ...
  std::map<std::string, double> quantities;   ///< Where: "block_tokens" 512, "bytes" 65536, ...
  std::map<std::string, std::string> labels;  ///< What: "dtype" "fp32", "mask" "causal", ...
  std::vector<double> seconds;                ///< Every repeat, in the order of measuring.
  double fitted_s = 0;                        ///< By the fitted parameters; 0: not fitted.
  bool is_held_out = false;                   ///< Kept out of the fit, to judge it.
};

/// A fitted parameter with the interval it is believed to lie in.
struct FittedParameter {
  double value = 0;
  double low = 0, high = 0;
};

/// How well one probe was fitted: absolute relative errors, as fractions.
struct FitQuality {
  int64_t fitted_samples = 0;
  int64_t held_out_samples = 0;
  double fitted_median = 0, fitted_worst = 0;
  double held_out_median = 0, held_out_worst = 0;
};

struct Calibration {
  std::vector<CalibrationSample> samples;
  std::map<std::string, FittedParameter> parameters;  ///< "attend.fp32.per_pair_s", ...
  std::map<std::string, FitQuality> fits;             ///< By probe.
};

}  // namespace ring
