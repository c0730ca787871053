// What a launcher of processes says about itself in the environment.
#pragma once

namespace ring {

/// Processes that mpirun or srun has started together with this one; 1 when neither has.
int launched_processes();

}  // namespace ring
