// Machine files: a machine profile with the calibration it comes from, as JSON.
#pragma once

#include <string>
#include <string_view>

#include "core/calibration.h"
#include "core/machine.h"

namespace ring {

struct MachineFile {
  Machine machine;
  Calibration calibration;  ///< Empty for a machine that was stated, not measured.
};

inline constexpr std::string_view kMachineSchema = "ringscope-machine";
inline constexpr int kMachineSchemaVersion = 1;

/// Reads back to an equal file; the same file gives the same bytes (docs/formats.md).
std::string machine_json(const MachineFile& file);

/// `name` is the file's name in messages. Throws Error(kUsage) with file and JSON pointer (or line
/// and column) for anything unknown, missing, of a wrong type, out of range or contradictory.
MachineFile parse_machine(std::string_view text, const std::string& name);

MachineFile read_machine(const std::string& path);
void write_machine(const std::string& path, const MachineFile& file);

}  // namespace ring
