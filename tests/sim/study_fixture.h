// A small scenario of a machine that comes with the program, and its study.
#pragma once

#include "core/machine_presets.h"
#include "sim/study.h"

namespace ring {

inline Scenario small_scenario() {
  Scenario scenario;
  scenario.problem.mask = Mask::causal(4096);
  scenario.problem.dtype = DType::kBF16;
  scenario.tuning.ranks = 4;
  scenario.tuning.block_tokens = 256;
  scenario.machine = "dgx-a100";
  return scenario;
}

inline Study study_of(const Scenario& scenario) {
  return run_study(plan_study(scenario, machine_preset(scenario.machine)));
}

}  // namespace ring
