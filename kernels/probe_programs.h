// ProbeProgram: a small ring program that calibration runs, and what its ops tell about costs.
#pragma once

#include <string>
#include <vector>

#include "core/ring_program.h"

namespace ring {

enum class ProbeKind {
  kAttend,      ///< One rank alone: attend, backward, delta, merge and finalize costs.
  kGradients,   ///< Gradients that travel: the cost of adding them.
  kContention,  ///< Every core attends on its own, nothing travels.
  kTransfer,    ///< One message after another between two ranks that do nothing else.
  kWakeup,      ///< Lanes that wait for another lane, on their core and across cores.
  kOverlap,     ///< Attention and messages of a ring beside each other, in its first step.
  kHandover,    ///< Computation in one lane that waits for computation in another.
};

struct ProbeProgram {
  ProbeKind kind = ProbeKind::kAttend;
  std::string label;                  ///< For people.
  bool is_held_out = false;           ///< Kept out of the fit, to judge it.
  std::string transfer = "transfer";  ///< Name of the samples of messages; empty: of no interest.
  std::string attend = "attend";      ///< Name of the samples of attention, likewise.
  RingProgram program;
};

/// The programs of a calibration on so many cores, in the order in which they are run.
std::vector<ProbeProgram> probe_programs(int cores);

}  // namespace ring
