#include "core/formats/time_axis.h"

#include <fmt/format.h>

#include <array>

namespace ring {

TimeAxis time_axis(Picoseconds end_ps, int wanted) {
  struct Unit {
    std::string_view name;
    Picoseconds size_ps;
  };
  static constexpr std::array<Unit, 5> kUnits{{{"s", 1'000'000'000'000},
                                               {"ms", 1'000'000'000},
                                               {"us", 1'000'000},
                                               {"ns", 1000},
                                               {"ps", 1}}};
  Picoseconds step = 1;
  for (int digit = 0; end_ps / step > wanted; ++digit) {
    step = digit % 3 == 1 ? step / 2 * 5 : step * 2;  // 1, 2, 5, 10, 20, ...
  }
  Unit unit = kUnits.back();
  for (const Unit& candidate : kUnits) {
    if (end_ps >= candidate.size_ps) {
      unit = candidate;
      break;
    }
  }
  TimeAxis axis{std::string(unit.name), {}};
  for (Picoseconds at = 0; at <= end_ps; at += step) {
    axis.ticks.push_back(
        {at, fmt::format("{:.6g}", static_cast<double>(at) / static_cast<double>(unit.size_ps))});
    if (end_ps - at < step) break;  // Also keeps `at` within 64 bits.
  }
  return axis;
}

}  // namespace ring
