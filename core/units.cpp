#include "core/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "core/error.h"

namespace ring {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kKi = 1024.0, kMi = kKi * 1024, kGi = kMi * 1024, kTi = kGi * 1024;

constexpr std::array kCountUnits = {
    Unit{"", 1},     Unit{"k", 1e3},  Unit{"K", 1e3},  Unit{"M", 1e6},  Unit{"G", 1e9},
    Unit{"T", 1e12}, Unit{"Ki", kKi}, Unit{"Mi", kMi}, Unit{"Gi", kGi}, Unit{"Ti", kTi}};
constexpr std::array kByteUnits = {
    Unit{"B", 1},     Unit{"kB", 1e3},  Unit{"KB", 1e3},  Unit{"MB", 1e6},  Unit{"GB", 1e9},
    Unit{"TB", 1e12}, Unit{"KiB", kKi}, Unit{"MiB", kMi}, Unit{"GiB", kGi}, Unit{"TiB", kTi},
    Unit{"Ki", kKi},  Unit{"Mi", kMi},  Unit{"Gi", kGi},  Unit{"Ti", kTi}};
constexpr std::array kTimeUnits = {Unit{"ps", 1},     Unit{"ns", 1e3}, Unit{"us", 1e6},
                                   Unit{"µs", 1e6},   Unit{"ms", 1e9}, Unit{"s", 1e12},
                                   Unit{"min", 60e12}};
constexpr std::array kBandwidthUnits = {
    Unit{"B/s", 1},        Unit{"kB/s", 1e3},    Unit{"KB/s", 1e3},   Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9},     Unit{"TB/s", 1e12},   Unit{"KiB/s", kKi},  Unit{"MiB/s", kMi},
    Unit{"GiB/s", kGi},    Unit{"TiB/s", kTi},   Unit{"b/s", 0.125},  Unit{"kb/s", 125.0},
    Unit{"Mb/s", 125e3},   Unit{"Gb/s", 125e6},  Unit{"Tb/s", 125e9}, Unit{"Mbit/s", 125e3},
    Unit{"Gbit/s", 125e6}, Unit{"Tbit/s", 125e9}};
constexpr std::array kFlopUnits = {
    Unit{"FLOP/s", 1},     Unit{"MFLOP/s", 1e6}, Unit{"GFLOP/s", 1e9}, Unit{"TFLOP/s", 1e12},
    Unit{"PFLOP/s", 1e15}, Unit{"FLOPS", 1},     Unit{"MFLOPS", 1e6},  Unit{"GFLOPS", 1e9},
    Unit{"TFLOPS", 1e12},  Unit{"PFLOPS", 1e15}};
constexpr std::array kFractionUnits = {Unit{"", 1}, Unit{"%", 0.01}};

struct Number {
  double value;           // With the unit applied.
  bool is_plain_integer;  // No fraction and no exponent was written.
  int64_t integer;        // The digits, when plain.
  double factor;
};

std::string unit_names(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) {
    if (unit.name.empty()) continue;
    if (!names.empty()) names += ", ";
    names += unit.name;
  }
  return names;
}

Number parse_number(std::string_view text, std::string_view what, std::span<const Unit> units,
                    std::string_view example) {
  const auto refuse = [&](std::string_view reason) {
    throw_usage(fmt::format("{} '{}': {}", what, text, reason),
                fmt::format("write it like {}; units: {}", example, unit_names(units)));
  };
  Number number{};
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number.value);
  if (parsed.ec != std::errc() || !std::isfinite(number.value)) refuse("not a number");
  std::string_view unit(parsed.ptr, static_cast<size_t>(end - parsed.ptr));
  const std::string_view digits(text.data(), static_cast<size_t>(parsed.ptr - text.data()));
  const auto whole = std::from_chars(digits.data(), digits.data() + digits.size(), number.integer);
  number.is_plain_integer = whole.ec == std::errc() && whole.ptr == digits.data() + digits.size();
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& candidate : units) {
    if (candidate.name != unit) continue;
    number.factor = candidate.factor;
    number.value *= candidate.factor;
    return number;
  }
  refuse(unit.empty() ? "the unit is missing" : fmt::format("'{}' is no unit of it", unit));
  return number;
}

int64_t whole_number(const Number& number, std::string_view text, std::string_view what) {
  if (number.is_plain_integer) {
    return checked_multiply(number.integer, static_cast<int64_t>(number.factor), what);
  }
  if (number.value != std::floor(number.value)) {
    throw_usage(fmt::format("{} '{}' is not a whole number", what, text));
  }
  if (std::abs(number.value) >= 9.2e18) {
    throw_usage(fmt::format("{} '{}' does not fit into 64 bits", what, text));
  }
  return static_cast<int64_t>(number.value);
}

struct Scale {
  double factor;
  std::string_view unit;
};

/// Four significant digits at most, three at least for scaled values.
std::string format_scaled(double value, std::span<const Scale> scales) {
  const Scale* chosen = &scales.front();
  for (const Scale& scale : scales) {
    // 0.9995 would round up to 1.000 of the next unit.
    if (std::abs(value) >= scale.factor * 0.9995) chosen = &scale;
  }
  const double scaled = value / chosen->factor;
  const double magnitude = std::abs(scaled);
  if (scaled == 0) return fmt::format("0 {}", chosen->unit);
  const int decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", scaled, decimals, chosen->unit);
}

constexpr std::array kTimeScales = {Scale{1, "ps"}, Scale{1e3, "ns"}, Scale{1e6, "us"},
                                    Scale{1e9, "ms"}, Scale{1e12, "s"}};
constexpr std::array kByteScales = {Scale{1, "B"}, Scale{kKi, "KiB"}, Scale{kMi, "MiB"},
                                    Scale{kGi, "GiB"}, Scale{kTi, "TiB"}};
constexpr std::array kBandwidthScales = {Scale{1, "B/s"}, Scale{1e3, "kB/s"}, Scale{1e6, "MB/s"},
                                         Scale{1e9, "GB/s"}, Scale{1e12, "TB/s"}};
constexpr std::array kFlopScales = {Scale{1, "FLOP/s"}, Scale{1e6, "MFLOP/s"},
                                    Scale{1e9, "GFLOP/s"}, Scale{1e12, "TFLOP/s"},
                                    Scale{1e15, "PFLOP/s"}};

struct ExactScale {
  int64_t factor;
  std::string_view unit;
};

std::string exact_integer(int64_t value, std::span<const ExactScale> scales) {
  for (const ExactScale& scale : scales) {
    if (value % scale.factor == 0 && (value != 0 || scale.factor == 1)) {
      return fmt::format("{}{}", value / scale.factor, scale.unit);
    }
  }
  return fmt::format("{}{}", value, scales.back().unit);
}

}  // namespace

Picoseconds picoseconds_from_seconds(double seconds) {
  const double time_ps = seconds * 1e12;
  if (!std::isfinite(time_ps) || std::abs(time_ps) >= 9.2e18) {
    throw_usage(fmt::format("a time of {} s does not fit into 64 bits of picoseconds", seconds),
                "the longest time is about 106 days");
  }
  return std::llround(time_ps);
}

int64_t parse_count(std::string_view text, std::string_view what) {
  return whole_number(parse_number(text, what, kCountUnits, "4096 or 64Ki"), text, what);
}

Bytes parse_bytes(std::string_view text, std::string_view what) {
  return whole_number(parse_number(text, what, kByteUnits, "64KiB or 2GB"), text, what);
}

Picoseconds parse_time(std::string_view text, std::string_view what) {
  const Number number = parse_number(text, what, kTimeUnits, "3us or 1.5ms");
  if (number.is_plain_integer) {
    return checked_multiply(number.integer, static_cast<int64_t>(number.factor), what);
  }
  return picoseconds_from_seconds(number.value * 1e-12);
}

double parse_bandwidth(std::string_view text, std::string_view what) {
  return parse_number(text, what, kBandwidthUnits, "450GB/s or 200Gb/s").value;
}

double parse_flop_rate(std::string_view text, std::string_view what) {
  return parse_number(text, what, kFlopUnits, "312TFLOP/s").value;
}

double parse_fraction(std::string_view text, std::string_view what) {
  return parse_number(text, what, kFractionUnits, "10% or 0.1").value;
}

std::string format_time(Picoseconds time_ps) {
  return format_scaled(static_cast<double>(time_ps), kTimeScales);
}

std::string format_bytes(Bytes bytes) {
  if (bytes > -1024 && bytes < 1024) return fmt::format("{} B", bytes);
  return format_scaled(static_cast<double>(bytes), kByteScales);
}

std::string format_bandwidth(double bytes_per_s) {
  return format_scaled(bytes_per_s, kBandwidthScales);
}

std::string format_flop_rate(double flops_per_s) { return format_scaled(flops_per_s, kFlopScales); }

std::string format_count(int64_t count) {
  static constexpr std::array kScales = {ExactScale{int64_t{1} << 30, "Gi"},
                                         ExactScale{int64_t{1} << 20, "Mi"},
                                         ExactScale{int64_t{1} << 10, "Ki"}, ExactScale{1, ""}};
  return exact_integer(count, kScales);
}

std::string format_percent(double fraction) {
  const double percent = fraction * 100;
  return fmt::format("{:.{}f} %", percent, std::abs(percent) < 9.995 ? 2 : 1);
}

std::string exact_time(Picoseconds time_ps) {
  static constexpr std::array kScales = {
      ExactScale{1'000'000'000'000, "s"}, ExactScale{1'000'000'000, "ms"},
      ExactScale{1'000'000, "us"}, ExactScale{1'000, "ns"}, ExactScale{1, "ps"}};
  return exact_integer(time_ps, kScales);
}

std::string exact_bytes(Bytes bytes) {
  static constexpr std::array kScales = {ExactScale{int64_t{1} << 30, "GiB"},
                                         ExactScale{int64_t{1} << 20, "MiB"},
                                         ExactScale{int64_t{1} << 10, "KiB"}, ExactScale{1, "B"}};
  return exact_integer(bytes, kScales);
}

std::string exact_bandwidth(double bytes_per_s) { return fmt::format("{}B/s", bytes_per_s); }

int64_t checked_multiply(int64_t a, int64_t b, std::string_view what) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw_usage(fmt::format("{} does not fit into 64 bits ({} x {})", what, a, b));
  }
  return result;
}

int64_t checked_add(int64_t a, int64_t b, std::string_view what) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) {
    throw_usage(fmt::format("{} does not fit into 64 bits ({} + {})", what, a, b));
  }
  return result;
}

}  // namespace ring
