// DeviceMonitor over NVML, whose few functions used here are declared by hand: its header comes
// with no package that the build needs otherwise.
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device/library.h"

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
  int (*count)(unsigned*) = library.function<int(unsigned*)>("nvmlDeviceGetCount_v2");
  int (*handle)(unsigned, NvmlDevice*) =
      library.function<int(unsigned, NvmlDevice*)>("nvmlDeviceGetHandleByIndex_v2");
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
};

DeviceSample sample_of(const Nvml& nvml, unsigned device, double time_s) {
  DeviceSample sample;
  sample.time_s = time_s;
  sample.device = static_cast<int>(device);
  NvmlDevice handle = nullptr;
  if (nvml.handle == nullptr || nvml.handle(device, &handle) != 0) return sample;
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
  Nvml nvml;
  std::atomic<bool> is_stopped{false};
  std::vector<DeviceSample> samples;
  std::thread thread;

  void run(double interval_s) {
    unsigned devices = 0;
    if (nvml.init == nullptr || nvml.init() != 0) return;
    if (nvml.count == nullptr || nvml.count(&devices) != 0) devices = 0;
    const auto start = std::chrono::steady_clock::now();
    while (!is_stopped.load()) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      for (unsigned device = 0; device < devices; ++device)
        samples.push_back(sample_of(nvml, device, elapsed.count()));
      std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
    }
    if (nvml.shutdown != nullptr) nvml.shutdown();
  }
};

DeviceMonitor::DeviceMonitor(double interval_s) : impl_(std::make_unique<Impl>()) {
  if (!impl_->nvml.library.is_there()) return;
  impl_->thread = std::thread([impl = impl_.get(), interval_s] { impl->run(interval_s); });
}

DeviceMonitor::~DeviceMonitor() { stop(); }

std::vector<DeviceSample> DeviceMonitor::stop() {
  impl_->is_stopped.store(true);
  if (impl_->thread.joinable()) impl_->thread.join();
  return std::exchange(impl_->samples, {});
}

}  // namespace ring::cuda
