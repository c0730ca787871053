// Outputs: the files that a verb leaves: run file, Chrome trace, picture.
#pragma once

#include <optional>
#include <string>

#include "core/formats/run_files.h"
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
  /// Before work that would be lost: throws where a file could not be put, or two have one name.
  void require_places() const;
  /// Writes what was asked for and says so on stderr. Throws Error(kRunFailed).
  void write(const RunFile& run, const RingProgram& program, Console& console) const;

 private:
  std::optional<std::string> run_, trace_, svg_;
};

}  // namespace ring
