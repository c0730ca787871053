// Run files from programs and back: begun from a program, shown as trace or picture, planned again.
#pragma once

#include <string>

#include "core/formats/run_json.h"
#include "core/ring_program.h"

namespace ring {

/// A run file that says what the program is, on which machine, by which version; no timelines yet.
RunFile begin_run_file(const RingProgram& program, const std::string& machine_name);

/// One trace with the timelines of the run, measured first. `program` may be null.
void write_run_trace(const std::string& path, const RunFile& run, const RingProgram* program);

/// A picture with the timelines of the run.
void write_run_picture(const std::string& path, const RunFile& run);

/// The program of a run file: planned again, or read from its text. Throws Error(kUsage).
RingProgram program_of(const RunFile& run);

}  // namespace ring
