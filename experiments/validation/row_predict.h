// Predictions of published rows: the ring program is simulated, collectives and kernels computed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/machine.h"
#include "experiments/validation/row_case.h"

namespace ring {

struct RowPrediction {
  double seconds = 0;            ///< Of the row's quantity; tokens for kTokens.
  double low_s = 0, high_s = 0;  ///< Where nine of ten values are expected.
  std::string method;  ///< "simulated ring", "simulated ring + closed-form all-to-all", ...
};

/// Machines of the library, each read once.
class MachineShelf {
 public:
  /// `folder` is searched first if it is not empty. Throws Error(kUsage) for a missing machine.
  explicit MachineShelf(std::string folder = {}) : folder_(std::move(folder)) {}
  const Machine& get(const std::string& name);
  /// Median of the errors of left-out points of the machine's kernel fits; 0 where none is known.
  double kernel_error(const std::string& name);

 private:
  struct Entry {
    Machine machine;
    double kernel_error = 0;
  };
  const Entry& entry(const std::string& name);

  std::string folder_;
  std::map<std::string, Entry> entries_;
};

/// Throws Error when the program cannot be planned or simulated; `row` must not be skipped.
RowPrediction predict_row(const RowCase& row, MachineShelf& shelf);

/// A time in the unit of the row: ms, iter/s, TFLOP/s per GPU.
double in_unit_of(const RowCase& row, double seconds);

}  // namespace ring
