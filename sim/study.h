// Study: one scenario on one machine, predicted and explained: all that a window shows of it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/ring_program.h"
#include "core/scenario.h"
#include "sim/analytic.h"
#include "sim/prediction.h"
#include "sim/why.h"

namespace ring {

/// Programs with more ops are refused: a timeline of them would not fit a window.
inline constexpr int64_t kMostStudyOps = 4'000'000;

/// What is known before anything is simulated.
struct StudyPlan {
  Scenario scenario;
  Machine machine;  ///< With the what-ifs of the scenario applied.
  RingProgram program;
  LowerBounds bounds;
  std::vector<std::string> extrapolated;
};

struct Study {
  std::shared_ptr<const StudyPlan> plan;
  SimulationResult result;  ///< With its timeline.
};

/// What takes a few simulations more.
struct StudyReasons {
  PredictedInterval interval;  ///< Empty when the machine states no noise.
  Why why;
};

/// `machine` as chosen for the scenario, without its what-ifs. Throws Error(kUsage) for problems
/// and tunings that cannot be planned, and for programs with more than kMostStudyOps ops.
std::shared_ptr<const StudyPlan> plan_study(const Scenario& scenario, Machine machine);

/// Throws as `simulate`; a program that cannot finish is refused with the cycle of its ops.
Study run_study(std::shared_ptr<const StudyPlan> plan, const std::stop_token& stop = {});

/// Interval and reasons, without what a change of each resource would buy.
StudyReasons explain_study(const Study& study, const std::stop_token& stop = {});
/// Adds that: a few dozen simulations.
void add_what_ifs(const Study& study, StudyReasons& reasons, const std::stop_token& stop = {});

/// Ops of the whole program, from those of rank 0, without keeping any. Counts no further than to
/// something above `most`.
int64_t estimated_ops(const ProgramSource& source, int64_t most);

}  // namespace ring
