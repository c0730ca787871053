// Units: integer picoseconds, bytes, rates and counts, read and printed with their unit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ring {

using Picoseconds = int64_t;
using Bytes = int64_t;
using Flops = int64_t;
using Tokens = int64_t;

inline constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;

/// Nearest picosecond; throws Error(kUsage) when it does not fit into 64 bits or is not finite.
Picoseconds picoseconds_from_seconds(double seconds);
constexpr double seconds_from_picoseconds(Picoseconds time_ps) {
  return static_cast<double>(time_ps) * 1e-12;
}

/// "64Ki", "1M", "4096", "1.5Mi" -> a whole count. k/K, M, G, T are powers of 1000 and Ki, Mi, Gi,
/// Ti powers of 1024. Every parse function takes `what` for the message, accepts one optional blank
/// before the unit, and throws Error(kUsage) for a missing or foreign unit, a number that is not
/// finite, a fraction of a count, or more than 64 bits.
int64_t parse_count(std::string_view text, std::string_view what);
/// "64KiB", "64Ki", "2 GB", "512B": a byte count; a bare number is bytes only when `what` says so
/// in its key, so the unit is demanded: "4096" alone is refused.
Bytes parse_bytes(std::string_view text, std::string_view what);
/// "3us", "1.5 ms", "250ns", "2s", "10ps", "1min".
Picoseconds parse_time(std::string_view text, std::string_view what);
/// "450GB/s", "25 GiB/s", "200Gb/s" or "200Gbit/s" (bits) -> bytes per second.
double parse_bandwidth(std::string_view text, std::string_view what);
/// "312TFLOP/s", "989 TFLOPS", "1.5 GFLOP/s" -> flops per second.
double parse_flop_rate(std::string_view text, std::string_view what);
/// "10%", "0.1" -> 0.1.
double parse_fraction(std::string_view text, std::string_view what);

/// Three or four significant digits and the unit that fits: "1.25 ms", "33.5 MB", "450 GB/s".
std::string format_time(Picoseconds time_ps);
std::string format_bytes(Bytes bytes);             ///< Binary units: "32.0 MiB".
std::string format_bandwidth(double bytes_per_s);  ///< Decimal units: "25.0 GB/s".
std::string format_flop_rate(double flops_per_s);
std::string format_count(int64_t count);  ///< "131072" as "128Ki" when exact, else digits.
std::string format_percent(double fraction);
/// A text that the parse function of the same kind reads back to exactly the same value.
std::string exact_time(Picoseconds time_ps);
std::string exact_bytes(Bytes bytes);
std::string exact_bandwidth(double bytes_per_s);

/// a*b and a+b that throw Error(kUsage) naming `what` instead of overflowing 64 bits.
int64_t checked_multiply(int64_t a, int64_t b, std::string_view what);
int64_t checked_add(int64_t a, int64_t b, std::string_view what);

}  // namespace ring
