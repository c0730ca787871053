// Progress: one line on a terminal that says how far a long job is and when it ends.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "experiments/console.h"

namespace ring {

/// Draws nothing when stderr is no terminal. The line is gone when the object is.
class Progress {
 public:
  Progress(Console& console, std::string label);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  /// `fraction` of the whole job that is done, in [0, 1]; `what` is going on now.
  void update(double fraction, std::string_view what);
  /// Takes the line away, so that other text can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  Console& console_;
  std::string label_;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool is_drawn_ = false;
};

/// "calibrate  [######--------]  43 %  12 s left  attend bf16 head 128", at most `columns` wide.
std::string progress_line(std::string_view label, double fraction, double elapsed_s,
                          std::string_view what, size_t columns);

}  // namespace ring
