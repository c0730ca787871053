// Prediction: what a program will take on a machine, with the interval that its noise makes.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "core/blame.h"
#include "core/formats/run_json.h"
#include "core/machine.h"
#include "core/ring_program.h"
#include "core/scenario.h"
#include "sim/simulator.h"

namespace ring {

struct Prediction {
  SimulationResult result;     ///< Without noise, unless the options have a noise seed.
  PredictedInterval interval;  ///< From replicas with noise; empty when the machine states none.
  std::vector<std::string> extrapolated;  ///< Quantities outside the range that was calibrated.
};

inline constexpr double kPredictedCoverage = 0.9;

/// The more ops, the fewer replicas (at least 8, at most 64), so that large programs stay quick.
/// The same inputs give the same prediction.
Prediction predict(const RingProgram& program, const Machine& machine,
                   const SimulationOptions& options = {});

/// For programs too large to be kept: streamed, symmetric ranks folded (sim/folding.h). There is no
/// timeline, so no blame, and no interval; a note says so. `outline` is outline_of() the program.
Prediction predict_streamed(const RingProgram& outline, const Machine& machine,
                            SimulationOptions options = {});

/// The interval alone, around a makespan that is known; empty when the machine states no noise.
PredictedInterval predicted_interval(const RingProgram& program, const Machine& machine,
                                     Picoseconds makespan_ps, const SimulationOptions& options);

/// Seed and disturbances of a scenario.
SimulationOptions simulation_options(const Scenario& scenario);

/// What the prediction's critical path was spent on.
Blame blame_of(const RingProgram& program, const Timeline& timeline, const Machine& machine);

/// Puts timeline, metrics and interval into the run file.
void add_prediction(RunFile& run, const Prediction& prediction);

/// "block 32 (calibrated 64 to 1024)" for every quantity outside its trusted range.
std::vector<std::string> extrapolated_quantities(const RingProgram& program,
                                                 const Machine& machine);

}  // namespace ring
