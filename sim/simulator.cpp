#include "sim/simulator.h"

#include "sim/engine.h"

namespace ring {

SimulationResult simulate(const RingProgram& program, const Machine& machine,
                          const SimulationOptions& options) {
  const auto source = stream_of(program);
  const Problem* problem = program.has_attention ? &program.problem : nullptr;
  SimulationEngine engine(*source, problem, machine, options);
  SimulationResult result = engine.run();
  result.timeline.name = program.name;
  return result;
}

SimulationResult simulate(const ProgramSource& source, const Machine& machine,
                          const SimulationOptions& options) {
  SimulationEngine engine(source, source.problem(), machine, options);
  SimulationResult result = engine.run();
  result.timeline.name = source.name();
  return result;
}

}  // namespace ring
