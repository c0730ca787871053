// DeviceMonitor over NVML, whose few functions used here are declared by hand: its header comes
// with no package that the build needs otherwise.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device/library.h"
#include "kernels/recorder.h"

namespace ring::cuda {
namespace {

// The C interface of libnvidia-ml.so.1, as NVML's API reference states it.
using NvmlDevice = void*;
struct NvmlUtilisation {
  unsigned gpu, memory;
};
struct NvmlMemory {
  unsigned long long total, free, used;
};
constexpr int kClockSm = 1;

struct Nvml {
  Library library{"libnvidia-ml.so.1"};
  int (*init)() = library.function<int()>("nvmlInit_v2");
  int (*shutdown)() = library.function<int()>("nvmlShutdown");
  int (*handle)(const char*, NvmlDevice*) =
      library.function<int(const char*, NvmlDevice*)>("nvmlDeviceGetHandleByPciBusId_v2");
  int (*clock)(NvmlDevice, int, unsigned*) =
      library.function<int(NvmlDevice, int, unsigned*)>("nvmlDeviceGetClockInfo");
  int (*utilisation)(NvmlDevice, NvmlUtilisation*) =
      library.function<int(NvmlDevice, NvmlUtilisation*)>("nvmlDeviceGetUtilizationRates");
  int (*memory)(NvmlDevice, NvmlMemory*) =
      library.function<int(NvmlDevice, NvmlMemory*)>("nvmlDeviceGetMemoryInfo");
  int (*power)(NvmlDevice,
               unsigned*) = library.function<int(NvmlDevice, unsigned*)>("nvmlDeviceGetPowerUsage");
  int (*throttle)(NvmlDevice, unsigned long long*) =
      library.function<int(NvmlDevice, unsigned long long*)>(
          "nvmlDeviceGetCurrentClocksThrottleReasons");
  int (*most_clock)(NvmlDevice, int, unsigned*) =
      library.function<int(NvmlDevice, int, unsigned*)>("nvmlDeviceGetMaxClockInfo");
  int (*power_limit)(NvmlDevice, unsigned*) =
      library.function<int(NvmlDevice, unsigned*)>("nvmlDeviceGetEnforcedPowerLimit");
};

DeviceSample sample_of(const Nvml& nvml, NvmlDevice handle) {
  DeviceSample sample;
  sample.time_ns = now_ns();
  unsigned number = 0;
  NvmlUtilisation utilisation{};
  NvmlMemory memory{};
  unsigned long long reasons = 0;
  if (nvml.clock != nullptr && nvml.clock(handle, kClockSm, &number) == 0)
    sample.sm_clock_mhz = number;
  if (nvml.utilisation != nullptr && nvml.utilisation(handle, &utilisation) == 0)
    sample.utilisation = utilisation.gpu / 100.0;
  if (nvml.memory != nullptr && nvml.memory(handle, &memory) == 0)
    sample.memory_used_bytes = static_cast<Bytes>(memory.used);
  if (nvml.power != nullptr && nvml.power(handle, &number) == 0) sample.power_w = number / 1000.0;
  if (nvml.throttle != nullptr && nvml.throttle(handle, &reasons) == 0)
    sample.throttle_reasons = static_cast<int64_t>(reasons);
  return sample;
}

}  // namespace

struct DeviceMonitor::Impl {
  explicit Impl(const std::vector<std::string>& bus_ids) {
    if (nvml.init == nullptr || nvml.init() != 0 || nvml.handle == nullptr) return;
    for (const std::string& bus_id : bus_ids) {
      NvmlDevice handle = nullptr;
      if (nvml.handle(bus_id.c_str(), &handle) != 0) handle = nullptr;
      handles.push_back(handle);
    }
  }
  ~Impl() {
    if (!handles.empty() && nvml.shutdown != nullptr) nvml.shutdown();
  }

  Nvml nvml;
  std::atomic<bool> is_stopped{false};
  std::vector<NvmlDevice> handles;  ///< By device; null: NVML does not know it.
  std::vector<DeviceSample> samples;
  std::thread thread;

  void run(double interval_s) {
    while (!is_stopped.load()) {
      for (size_t device = 0; device < handles.size(); ++device) {
        if (handles[device] == nullptr) continue;
        samples.push_back(sample_of(nvml, handles[device]));
        samples.back().device = static_cast<int>(device);
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
    }
  }
};

DeviceMonitor::DeviceMonitor(const std::vector<std::string>& bus_ids, double interval_s)
    : impl_(std::make_unique<Impl>(bus_ids)) {
  if (impl_->handles.empty()) return;
  impl_->thread = std::thread([impl = impl_.get(), interval_s] { impl->run(interval_s); });
}

DeviceMonitor::~DeviceMonitor() { stop(); }

std::vector<DeviceSample> DeviceMonitor::stop() {
  impl_->is_stopped.store(true);
  if (impl_->thread.joinable()) impl_->thread.join();
  return std::exchange(impl_->samples, {});
}

std::vector<DeviceLimits> DeviceMonitor::limits() const {
  const Nvml& nvml = impl_->nvml;
  std::vector<DeviceLimits> limits;
  for (const NvmlDevice handle : impl_->handles) {
    DeviceLimits& own = limits.emplace_back();
    unsigned number = 0;
    if (handle == nullptr) continue;
    if (nvml.power_limit != nullptr && nvml.power_limit(handle, &number) == 0)
      own.power_limit_w = number / 1000.0;
    if (nvml.most_clock != nullptr && nvml.most_clock(handle, kClockSm, &number) == 0)
      own.most_sm_clock_mhz = number;
  }
  return limits;
}

}  // namespace ring::cuda
