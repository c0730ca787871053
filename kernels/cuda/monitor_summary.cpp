#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "kernels/cuda/cuda_device.h"

namespace ring::cuda {
namespace {

// Bits of NVML's clock event reasons that mean that the clock is held down.
constexpr std::pair<int64_t, std::string_view> kReasons[] = {
    {0x4, "power cap"},          {0x8, "hardware slowdown"},     {0x20, "software thermal"},
    {0x40, "hardware thermal"},  {0x80, "hardware power brake"}, {0x10, "sync boost"},
    {0x2, "application clocks"},
};

}  // namespace

std::map<std::string, std::string> monitor_summary(const std::vector<DeviceSample>& samples) {
  std::map<std::string, std::string> facts;
  if (samples.empty()) return facts;
  double least = -1, most = -1, busiest = -1, power = -1;
  Bytes memory = -1;
  int64_t reasons = 0;
  for (const DeviceSample& sample : samples) {
    if (sample.sm_clock_mhz >= 0) {
      least = least < 0 ? sample.sm_clock_mhz : std::min(least, sample.sm_clock_mhz);
      most = std::max(most, sample.sm_clock_mhz);
    }
    busiest = std::max(busiest, sample.utilisation);
    power = std::max(power, sample.power_w);
    memory = std::max(memory, sample.memory_used_bytes);
    reasons |= sample.throttle_reasons;
  }
  facts["gpu samples"] = std::to_string(samples.size());
  if (most >= 0) facts["gpu clock"] = fmt::format("{:.0f} to {:.0f} MHz", least, most);
  if (busiest >= 0) facts["gpu utilisation"] = format_percent(busiest);
  if (memory >= 0) facts["gpu memory"] = format_bytes(memory);
  if (power >= 0) facts["gpu power"] = fmt::format("{:.0f} W", power);
  std::string named;
  for (const auto& [bit, name] : kReasons) {
    if ((reasons & bit) != 0) named += (named.empty() ? "" : ", ") + std::string(name);
  }
  facts["gpu clock held down by"] = named.empty() ? "nothing" : named;
  return facts;
}

}  // namespace ring::cuda
