#include "gui/session/machine_cache.h"

namespace ring::gui {

MachineChoice MachineCache::get(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!choice_ || text_ != text) {
    choice_ = choose_machine(text);
    text_ = text;
  }
  return *choice_;
}

void MachineCache::forget() {
  const std::lock_guard lock(mutex_);
  choice_.reset();
}

}  // namespace ring::gui
