// Which machine profile a command uses: the one given, the one calibrated here, or a stand-in.
#pragma once

#include <string>
#include <vector>

#include "core/calibration.h"
#include "core/machine.h"

namespace ring {

struct MachineChoice {
  Machine machine;
  std::string source;        ///< Path of the file, or "preset" or "built-in".
  std::string note;          ///< A sentence that says which machine it is and what to think of it.
  bool is_stand_in = false;  ///< No file was given or found.
  Calibration calibration;   ///< What the file says of how it came about; empty without a file.
};

/// `path` is a machine file, a preset such as dgx-a100:nodes=2, or a topology of another tool with
/// keys behind it (kernels/topology_choice.h). If it is empty, the file that
/// `ringscope calibrate` left for this user; without that, an uncalibrated stand-in for this
/// machine. Throws Error(kUsage) for a bad file.
MachineChoice choose_machine(const std::string& path);

/// A machine that a list can offer: what `choose_machine` takes, and what to call it.
struct MachineOffer {
  std::string text;     ///< "" for this machine.
  std::string summary;  ///< One sentence.
};

/// This machine, and every preset.
std::vector<MachineOffer> machine_offers();

}  // namespace ring
