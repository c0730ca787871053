// MachineChanges: copies of a machine or program in which one thing is faster or slower.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/machine_scaling.h"
#include "core/ring_program.h"

namespace ring {

/// One parameter of a machine: what it is called and how it is multiplied.
struct MachineParameter {
  std::string name;
  bool is_cost = false;  ///< Smaller is better: latency, launch, wake-up.
  std::function<void(Machine&, double factor)> scale;
};

/// The parameters that can matter to a program: links by class where transfers use links, the copy
/// rate where they do not, and costs of computation that are not zero.
std::vector<MachineParameter> parameters_of(const Machine& machine, const RingProgram& program);

/// The program with the time of its compute ops multiplied.
RingProgram with_compute_scaled(const RingProgram& program, double factor);

}  // namespace ring
