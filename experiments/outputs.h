// Outputs: the files that a verb leaves: run file, Chrome trace, picture.
#pragma once

#include <optional>
#include <string>

#include "core/formats/run_json.h"
#include "core/ring_program.h"
#include "experiments/console.h"
#include "experiments/verb_options.h"

namespace ring {

class OutputOptions {
 public:
  /// -o, --trace and --svg.
  void declare(VerbOptions& options);
  bool is_any_given() const { return run_ || trace_ || svg_; }
  /// Writes what was asked for and says so on stderr. Throws Error(kRunFailed).
  void write(const RunFile& run, const RingProgram& program, Console& console) const;

 private:
  std::optional<std::string> run_, trace_, svg_;
};

/// A run file that says what the program is, on which machine, by which version; no timelines yet.
RunFile begin_run_file(const RingProgram& program, const std::string& machine_name);

/// One trace with the timelines of the run, measured first. `program` may be null.
void write_run_trace(const std::string& path, const RunFile& run, const RingProgram* program);

/// A picture with the timelines of the run.
void write_run_picture(const std::string& path, const RunFile& run);

/// The program of a run file: planned again, or read from its text. Throws Error(kUsage).
RingProgram program_of(const RunFile& run);

}  // namespace ring
