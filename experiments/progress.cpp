#include "experiments/progress.h"

#include <fmt/format.h>
#include <algorithm>

namespace ring {

namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(100);

std::string time_left(double fraction, double elapsed_s) {
  if (fraction < 0.02 || elapsed_s < 0.5) return "";
  const double left_s = elapsed_s * (1 - fraction) / fraction;
  if (left_s >= 90) return fmt::format("  {:.0f} min left", left_s / 60);
  return fmt::format("  {:.0f} s left", left_s);
}

}  // namespace

std::string progress_line(std::string_view label, double fraction, double elapsed_s,
                          std::string_view what, size_t columns) {
  constexpr size_t kBarColumns = 20;
  const double done = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<size_t>(done * kBarColumns);
  std::string line = fmt::format("{}  [{}{}] {:3.0f} %{}  {}", label, std::string(filled, '#'),
                                 std::string(kBarColumns - filled, '-'), done * 100,
                                 time_left(done, elapsed_s), what);
  while (display_width(line) > columns) line.pop_back();
  return line;
}

Progress::Progress(Console& console, std::string label)
    : console_(console), label_(std::move(label)), start_(Clock::now()) {}

void Progress::update(double fraction, std::string_view what) {
  if (!console_.is_terminal()) return;
  const Clock::time_point now = Clock::now();
  if (is_drawn_ && now - drawn_ < kRedrawInterval) return;
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  const size_t known = console_.talk_style().columns;
  const size_t columns = known > 1 ? known - 1 : 79;
  console_.draw(
      fmt::format("\r{}\x1b[K", progress_line(label_, fraction, elapsed_s, what, columns)));
  is_drawn_ = true;
  drawn_ = now;
}

void Progress::clear() {
  if (is_drawn_) console_.draw("\r\x1b[K");
  is_drawn_ = false;
}

}  // namespace ring
