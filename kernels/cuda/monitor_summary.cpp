#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/fit.h"
#include "kernels/cuda/cuda_device.h"

namespace ring::cuda {
namespace {

// Bits of NVML's clock event reasons that mean that the clock is held down, and that of idling.
constexpr std::pair<int64_t, std::string_view> kReasons[] = {
    {0x4, "power cap"},          {0x8, "hardware slowdown"},     {0x20, "software thermal"},
    {0x40, "hardware thermal"},  {0x80, "hardware power brake"}, {0x10, "sync boost"},
    {0x2, "application clocks"},
};
constexpr int64_t kIdleReason = 0x1;

/// A clock this far below that of the fastest device is named.
constexpr double kSlowClock = 0.98;

/// What the samples say about one device.
struct DeviceSummary {
  std::vector<double> clocks_mhz;  ///< While it works.
  double busiest = -1, power_w = -1;
  Bytes memory_bytes = -1;
  int64_t reasons = 0;
};

std::map<int, DeviceSummary> by_device(const std::vector<DeviceSample>& samples) {
  std::map<int, DeviceSummary> devices;
  for (const DeviceSample& sample : samples) {
    DeviceSummary& own = devices[sample.device];
    const bool is_idle = (sample.throttle_reasons & kIdleReason) != 0;
    if (sample.sm_clock_mhz >= 0 && !is_idle) own.clocks_mhz.push_back(sample.sm_clock_mhz);
    own.busiest = std::max(own.busiest, sample.utilisation);
    own.power_w = std::max(own.power_w, sample.power_w);
    own.memory_bytes = std::max(own.memory_bytes, sample.memory_used_bytes);
    own.reasons |= sample.throttle_reasons;
  }
  return devices;
}

/// "1395 to 1410 MHz", and which device is slow where one is.
std::string clock_text(const std::map<int, DeviceSummary>& devices) {
  double least = 0, most = 0, slowest = 0, fastest = 0;
  int slow_device = 0;
  for (const auto& [device, own] : devices) {
    if (own.clocks_mhz.empty()) continue;
    const auto [low, high] = std::minmax_element(own.clocks_mhz.begin(), own.clocks_mhz.end());
    const double middle = median(own.clocks_mhz);
    least = most == 0 ? *low : std::min(least, *low);
    most = std::max(most, *high);
    fastest = std::max(fastest, middle);
    if (slowest == 0 || middle < slowest) {
      slowest = middle;
      slow_device = device;
    }
  }
  if (most == 0) return "";
  std::string text = fmt::format("{:.0f} to {:.0f} MHz", least, most);
  if (slowest < kSlowClock * fastest)
    text += fmt::format(", gpu {} slowest: {:.0f} where the fastest has {:.0f}", slow_device,
                        slowest, fastest);
  return text;
}

/// "gpu 3: power cap, software thermal; gpu 5: power cap".
std::string held_down_text(const std::map<int, DeviceSummary>& devices) {
  std::string text;
  for (const auto& [device, own] : devices) {
    std::string named;
    for (const auto& [bit, name] : kReasons) {
      if ((own.reasons & bit) != 0) named += (named.empty() ? "" : ", ") + std::string(name);
    }
    if (named.empty()) continue;
    text += fmt::format("{}gpu {}: {}", text.empty() ? "" : "; ", device, named);
  }
  return text.empty() ? std::string(kHeldDownByNothing) : text;
}

/// A quantity of the samples, as a counter shows it; negative: not told.
struct Quantity {
  std::string_view name, unit;
  double (*value)(const DeviceSample&);
};
constexpr Quantity kQuantities[] = {
    {"SM clock", "MHz", [](const DeviceSample& it) { return it.sm_clock_mhz; }},
    {"utilisation", "%",
     [](const DeviceSample& it) { return it.utilisation < 0 ? -1 : it.utilisation * 100; }},
    {"memory", "GiB",
     [](const DeviceSample& it) { return static_cast<double>(it.memory_used_bytes) / 0x1p30; }},
    {"power", "W", [](const DeviceSample& it) { return it.power_w; }},
    {"clock event reasons", "bits",
     [](const DeviceSample& it) { return static_cast<double>(it.throttle_reasons); }},
};

}  // namespace

std::map<std::string, std::string> monitor_summary(const std::vector<DeviceSample>& samples) {
  std::map<std::string, std::string> facts;
  if (samples.empty()) return facts;
  const std::map<int, DeviceSummary> devices = by_device(samples);
  double busiest = -1, power_w = -1;
  Bytes memory_bytes = -1;
  for (const auto& [device, own] : devices) {
    busiest = std::max(busiest, own.busiest);
    power_w = std::max(power_w, own.power_w);
    memory_bytes = std::max(memory_bytes, own.memory_bytes);
  }
  facts["gpu samples"] = std::to_string(samples.size());
  if (const std::string clock = clock_text(devices); !clock.empty()) facts["gpu clock"] = clock;
  if (busiest >= 0) facts["gpu utilisation"] = format_percent(busiest);
  if (memory_bytes >= 0) facts["gpu memory"] = format_bytes(memory_bytes);
  if (power_w >= 0) facts["gpu power"] = fmt::format("{:.0f} W", power_w);
  facts[std::string(kHeldDownFact)] = held_down_text(devices);
  return facts;
}

std::vector<Counter> sampled_counters(const std::vector<DeviceSample>& samples, int64_t began_ns,
                                      Picoseconds makespan_ps) {
  std::map<int, std::vector<DeviceSample>> devices;
  for (const DeviceSample& sample : samples) devices[sample.device].push_back(sample);
  std::vector<Counter> counters;
  constexpr Picoseconds kPicosecondsPerNanosecond = 1000;
  const int64_t end_ns = began_ns + makespan_ps / kPicosecondsPerNanosecond;
  for (const auto& [device, own] : devices) {
    for (const Quantity& quantity : kQuantities) {
      Counter counter{std::string(quantity.name), std::string(quantity.unit), device, {}};
      for (size_t i = 0; i < own.size(); ++i) {
        const bool is_before = i + 1 < own.size() && own[i + 1].time_ns <= began_ns;
        const bool is_after = i > 0 && own[i - 1].time_ns > end_ns;
        const double value = quantity.value(own[i]);
        if (is_before || is_after || value < 0) continue;
        counter.points.push_back({(own[i].time_ns - began_ns) * kPicosecondsPerNanosecond, value});
      }
      if (!counter.points.empty()) counters.push_back(std::move(counter));
    }
  }
  return counters;
}

std::vector<std::string> bus_ids(const DeviceRuntime& runtime) {
  std::vector<std::string> ids;
  for (int device = 0; device < runtime.device_count(); ++device)
    ids.push_back(runtime.facts(device).bus_id);
  return ids;
}

}  // namespace ring::cuda
