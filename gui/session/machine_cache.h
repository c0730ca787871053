// MachineCache: the machine asked for last, so that a drag does not read or build it again.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "kernels/machine_choice.h"

namespace ring::gui {

/// May be asked from any thread.
class MachineCache {
 public:
  /// As choose_machine.
  MachineChoice get(const std::string& text);
  /// Files are read again.
  void forget();

 private:
  std::mutex mutex_;
  std::string text_;
  std::optional<MachineChoice> choice_;
};

}  // namespace ring::gui
