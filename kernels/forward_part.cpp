#include "kernels/forward_part.h"

#include "core/strategy.h"

namespace ring {

RingProgram forward_part_of(const RingProgram& program) {
  Problem problem = program.problem;
  problem.pass = Pass::kForward;
  Tuning tuning = program.tuning;
  tuning.backward = BackwardMoves::kAuto;
  tuning.accumulation_steps = 1;
  tuning.optimizer_gap_ps = 0;
  return plan(problem, tuning);
}

}  // namespace ring
