// The ring configurations that `demo` predicts and runs; calibration measures none of them.
#pragma once

#include <string>
#include <vector>

#include "core/problem.h"
#include "core/tuning.h"

namespace ring {

struct DemoConfiguration {
  std::string name;  ///< Short and unique; also names its run file.
  Problem problem;
  Tuning tuning;
};

/// Sized for about half a second each on two cores. `is_small` shortens the sequences fourfold, for
/// tests and for a first look.
std::vector<DemoConfiguration> demo_configurations(bool is_small);
/// The same of backward passes, with and without the forward pass before them.
std::vector<DemoConfiguration> backward_demo_configurations(bool is_small);

}  // namespace ring
