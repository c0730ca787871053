// The CUDA devices of this machine: whether there are any, and a runtime that runs on them.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/counters.h"
#include "kernels/cuda/runtime.h"

namespace ring::cuda {

/// What must be the same in all processes of a job that exchanges messages over NCCL.
using NcclId = std::array<char, 128>;

/// Ranks that meet in exchanges; every rank has a device of its own.
struct NcclJob {
  NcclId id{};
  int ranks = 1;
  std::vector<int> local_ranks;  ///< Of this process, and their devices.
  std::vector<int> devices;
};

/// Which kernels attend on GPUs.
enum class AttendKernels {
  kBest,   ///< On every device and for every head dim the fastest by design.
  kMma,    ///< mma.sync: those of sm_80, which run on all devices.
  kWgmma,  ///< wgmma: those of sm_90a, and where a head dim has none those of sm_80.
  kCudnn,  ///< cuDNN's, to compare with, for blocks that all rows see; else those of kBest.
};
std::string_view name(AttendKernels kernels);
/// Throws Error(kUsage) with the names there are.
AttendKernels parse_attend_kernels(std::string_view text);

/// Why nothing can run on a CUDA device here, in words; empty when it can.
std::vector<std::string> missing_devices();

/// All devices that the process may use. Throws Error(kUnavailable) where there are none, or no
/// NCCL for the job, or no device for the kernels.
std::unique_ptr<DeviceRuntime> make_cuda_runtime(const std::optional<NcclJob>& job = std::nullopt,
                                                 AttendKernels kernels = AttendKernels::kBest);

/// A fresh id, to be made by one process and given to all. Throws Error(kUnavailable) without NCCL.
NcclId make_nccl_id();

/// What the driver says about a device at one moment; a field it does not tell is negative.
struct DeviceSample {
  int64_t time_ns = 0;  ///< On the clock of now_ns().
  int device = 0;       ///< Place among the devices that are watched.
  double sm_clock_mhz = -1;
  double utilisation = -1;  ///< Share of time in which a kernel ran.
  Bytes memory_used_bytes = -1;
  double power_w = -1;
  int64_t throttle_reasons = 0;  ///< Bits of nvmlClocksThrottleReasons.
};

/// What holds for a device as long as nobody changes it; a field that is not told is negative.
struct DeviceLimits {
  double power_limit_w = -1;
  double most_sm_clock_mhz = -1;
};

/// Samples NVML in a thread of its own from construction until stop(). Without NVML it has nothing.
class DeviceMonitor {
 public:
  /// Devices by their places on the PCI bus (DeviceFacts::bus_id): NVML counts all of the host, the
  /// process may see fewer.
  explicit DeviceMonitor(const std::vector<std::string>& bus_ids, double interval_s = 0.02);
  ~DeviceMonitor();
  std::vector<DeviceSample> stop();
  /// Of the devices, in their order.
  std::vector<DeviceLimits> limits() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Facts for a result's context: range of clocks while a device works and which is slowest, highest
/// memory and power, and what held the clocks of which device down, by name.
std::map<std::string, std::string> monitor_summary(const std::vector<DeviceSample>& samples);
/// The fact that says what held clocks down, and its text when nothing did.
inline constexpr std::string_view kHeldDownFact = "gpu clock held down by";
inline constexpr std::string_view kHeldDownByNothing = "nothing";

/// Counters beside a timeline that began at began_ns and took so long: what was sampled meanwhile,
/// the last sample before and the first after, on the clock of the timeline.
std::vector<Counter> sampled_counters(const std::vector<DeviceSample>& samples, int64_t began_ns,
                                      Picoseconds makespan_ps);

/// The places of all devices of a runtime, for a monitor.
std::vector<std::string> bus_ids(const DeviceRuntime& runtime);

}  // namespace ring::cuda
