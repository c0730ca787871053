#include "kernels/calibration_file.h"

#include "core/formats/machine_json.h"
#include "core/paths.h"

namespace ring {

std::string write_calibration(const CalibrationResult& result, const std::string& path) {
  const std::string file = result.is_complete ? path : path + ".partial";
  make_parent_folders(file);
  write_machine(file, {result.machine, result.calibration});
  return file;
}

}  // namespace ring
