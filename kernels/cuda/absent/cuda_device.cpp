// Without a CUDA toolkit there is nothing to run on.
#include "kernels/cuda/cuda_device.h"

#include "core/error.h"

namespace ring::cuda {

std::vector<std::string> missing_devices() {
  return {"ringscope was built without a CUDA toolkit"};
}

std::unique_ptr<DeviceRuntime> make_cuda_runtime(const std::optional<NcclJob>&, AttendKernels) {
  throw Error(ErrorKind::kUnavailable, "ringscope was built without a CUDA toolkit");
}

NcclId make_nccl_id() {
  throw Error(ErrorKind::kUnavailable, "ringscope was built without a CUDA toolkit");
}

struct DeviceMonitor::Impl {};
DeviceMonitor::DeviceMonitor(const std::vector<std::string>&, double) {}
DeviceMonitor::~DeviceMonitor() = default;
std::vector<DeviceSample> DeviceMonitor::stop() { return {}; }
std::vector<DeviceLimits> DeviceMonitor::limits() const { return {}; }

}  // namespace ring::cuda
