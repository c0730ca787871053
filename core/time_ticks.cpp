#include "core/time_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace ring {
namespace {

struct Unit {
  std::string_view name;
  Picoseconds size_ps;
};
constexpr std::array<Unit, 5> kUnits{
    {{"s", 1'000'000'000'000}, {"ms", 1'000'000'000}, {"us", 1'000'000}, {"ns", 1000}, {"ps", 1}}};
constexpr int kMostDecimals = 4;

/// The largest unit that is not more than the time.
const Unit& unit_of(Picoseconds time_ps) {
  const auto* const unit = std::find_if(kUnits.begin(), kUnits.end(),
                                        [&](const Unit& u) { return u.size_ps <= time_ps; });
  return unit == kUnits.end() ? kUnits.back() : *unit;
}

Picoseconds step_of(double span_ps, int wanted) {
  Picoseconds step = 1;
  for (int digit = 0; span_ps / static_cast<double>(step) > wanted && step < INT64_MAX / 4;
       ++digit) {
    step = digit % 3 == 1 ? step / 2 * 5 : step * 2;  // 1, 2, 5, 10, 20, ...
  }
  return step;
}

/// Decimals that tell ticks apart.
int decimals_of(Picoseconds step_ps, const Unit& unit) {
  int decimals = 0;
  for (Picoseconds size = unit.size_ps; step_ps % size != 0 && size > 1; size /= 10) ++decimals;
  return decimals;
}

Picoseconds floor_to(Picoseconds time_ps, Picoseconds step_ps) {
  const Picoseconds rest = time_ps % step_ps;
  return time_ps - (rest < 0 ? rest + step_ps : rest);
}

}  // namespace

TimeTicks time_ticks(Picoseconds from_ps, Picoseconds to_ps, int wanted) {
  RING_ASSERT(from_ps < to_ps && wanted > 0);
  TimeTicks result;
  const double span_ps = static_cast<double>(to_ps) - static_cast<double>(from_ps);
  result.step_ps = step_of(span_ps, wanted);
  const Picoseconds furthest =
      std::max(to_ps, from_ps == INT64_MIN ? INT64_MAX : std::abs(from_ps));
  const Unit* unit = &unit_of(furthest);
  if (decimals_of(result.step_ps, *unit) > kMostDecimals) {
    result.base_ps =
        floor_to(from_ps, result.step_ps * (result.step_ps < INT64_MAX / 400 ? 100 : 1));
    unit = &unit_of(std::max<Picoseconds>(1, to_ps - result.base_ps));
  }
  result.unit = unit->name;
  const int decimals = decimals_of(result.step_ps, *unit);
  Picoseconds at = floor_to(from_ps, result.step_ps);
  if (at < from_ps) at += result.step_ps;
  while (at <= to_ps) {
    const double value =
        static_cast<double>(at - result.base_ps) / static_cast<double>(unit->size_ps);
    result.ticks.push_back({at, fmt::format("{:.{}f}", value, decimals)});
    if (to_ps - at < result.step_ps) break;
    at += result.step_ps;
  }
  return result;
}

std::string time_label(Picoseconds at_ps, double resolution_ps) {
  const Unit& unit = unit_of(at_ps == INT64_MIN ? INT64_MAX : std::abs(at_ps));
  int decimals = 0;
  for (auto size = static_cast<double>(unit.size_ps); size > resolution_ps && size > 1;
       size /= 10) {
    ++decimals;
  }
  return fmt::format("{:.{}f} {}", static_cast<double>(at_ps) / static_cast<double>(unit.size_ps),
                     decimals, unit.name);
}

}  // namespace ring
