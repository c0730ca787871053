#include "kernels/cuda/device/cuda_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "core/error.h"
#include "kernels/cuda/device/check.h"

namespace ring::cuda {
namespace {

/// Resolution of CUDA events, as the runtime's documentation states it.
constexpr double kEventResolution_s = 0.5e-6;

double host_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  RING_CUDA_CHECK(cudaDeviceGetAttribute(&value, what, device));
  return value;
}

DeviceFacts facts_of(int device) {
  cudaDeviceProp properties{};
  RING_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  DeviceFacts facts;
  facts.name = properties.name;
  char bus_id[32] = {};
  RING_CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
  facts.bus_id = bus_id;
  facts.capability = properties.major * 10 + properties.minor;
  facts.multiprocessors = properties.multiProcessorCount;
  facts.memory_bytes = static_cast<Bytes>(properties.totalGlobalMem);
  facts.shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  facts.shared_sm_bytes = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  return facts;
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

void check_cuda(cudaError_t error, const char* call, const std::source_location& where) {
  if (error == cudaSuccess) return;
  int device = -1;
  cudaGetDevice(&device);
  std::string_view file = where.file_name();
  file = file.substr(file.rfind('/') + 1);
  std::string_view name = call;
  name = name.substr(0, name.find('('));
  throw Error(error == cudaErrorNoDevice ? ErrorKind::kUnavailable : ErrorKind::kRunFailed,
              fmt::format("{} failed on device {} ({}:{}): {}", name, device, file, where.line(),
                          cudaGetErrorString(error)),
              error == cudaErrorMemoryAllocation ? "use fewer tokens, ranks or buffers" : "");
}

std::vector<std::string> missing_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return {fmt::format("CUDA: {}", cudaGetErrorString(error))};
  if (count == 0) return {"CUDA finds no device"};
  for (int device = 0; device < count; ++device) {
    if (facts_of(device).capability < 80)
      return {fmt::format("device {} is older than compute capability 8.0", device)};
  }
  return {};
}

std::unique_ptr<DeviceRuntime> make_cuda_runtime(const std::optional<NcclJob>& job,
                                                 AttendKernels kernels) {
  return std::make_unique<CudaRuntime>(job, kernels);
}

NcclId make_nccl_id() { return nccl_id(); }

CudaRuntime::CudaRuntime(const std::optional<NcclJob>& job, AttendKernels kernels)
    : kernels_(kernels),
      forward_(forward_kernels()),
      hopper_(hopper_forward_kernels()),
      backward_(backward_kernels()) {
  const std::vector<std::string> missing = missing_devices();
  if (!missing.empty()) throw Error(ErrorKind::kUnavailable, missing.front());
  int count = 0;
  RING_CUDA_CHECK(cudaGetDeviceCount(&count));
  for (int device = 0; device < count; ++device) {
    facts_.push_back(facts_of(device));
    RING_CUDA_CHECK(cudaSetDevice(device));
    cudaStream_t own = nullptr;
    RING_CUDA_CHECK(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    base_streams_.push_back(own);
    bases_.push_back({nullptr, device});
    RING_CUDA_CHECK(cudaEventCreate(&bases_.back().handle));
    base_s_.push_back(0);
  }
  const auto takes_wgmma = [this](const DeviceFacts& facts) {
    return !hopper_.empty() && facts.capability == hopper_.front().capability;
  };
  if (kernels == AttendKernels::kWgmma && !std::all_of(facts_.begin(), facts_.end(), takes_wgmma))
    throw Error(ErrorKind::kUnavailable, "the wgmma kernels run on compute capability 9.0 alone",
                "choose best or mma, or build for 90a");
  if (kernels == AttendKernels::kCudnn && CudnnAttention::version().empty())
    throw Error(ErrorKind::kUnavailable, "no cuDNN of version 9.13 or later was found",
                "choose best, mma or wgmma");
  enable_peers();
  if (job) comms_ = std::make_unique<NcclComms>(*job);
}

CudaRuntime::~CudaRuntime() {
  // Errors of the end are of no use to anybody.
  for (const Graph& graph : graphs_) cudaGraphExecDestroy(graph.handle);
  comms_.reset();
  cudnn_.clear();
  for (const auto* list : {&events_, &stamps_, &bases_}) {
    for (const Event& event : *list) cudaEventDestroy(event.handle);
  }
  for (const Stream& own : streams_) cudaStreamDestroy(own.handle);
  for (const cudaStream_t own : base_streams_) cudaStreamDestroy(own);
  for (const auto& [begin, block] : memory_) cudaFree(const_cast<std::byte*>(begin));
}

void CudaRuntime::enable_peers() {
  for (int a = 0; a < device_count(); ++a) {
    RING_CUDA_CHECK(cudaSetDevice(a));
    for (int b = 0; b < device_count(); ++b) {
      int can_access = 0;
      if (a != b) RING_CUDA_CHECK(cudaDeviceCanAccessPeer(&can_access, a, b));
      // Without access copies go through the host, which is slower and still right.
      if (can_access != 0) cudaDeviceEnablePeerAccess(b, 0);
    }
  }
  cudaGetLastError();
}

/// Atomics go over NVLink and not over PCIe; without access copies go through the host.
std::string CudaRuntime::link_class(int from, int to) const {
  int has_access = 0, has_atomics = 0, rank = 0;
  RING_CUDA_CHECK(cudaDeviceGetP2PAttribute(&has_access, cudaDevP2PAttrAccessSupported, from, to));
  if (has_access == 0) return "host";
  RING_CUDA_CHECK(
      cudaDeviceGetP2PAttribute(&has_atomics, cudaDevP2PAttrNativeAtomicSupported, from, to));
  RING_CUDA_CHECK(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, from, to));
  std::string name = has_atomics != 0 ? "nvlink" : "pcie";
  if (rank > 0) name += std::to_string(rank);  // Fewer NVLinks, say.
  return name;
}

std::map<std::string, std::string> CudaRuntime::versions() const {
  int driver = 0, runtime = 0;
  RING_CUDA_CHECK(cudaDriverGetVersion(&driver));
  RING_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));
  std::map<std::string, std::string> facts = {{"gpu", facts_.front().name},
                                              {"gpu count", std::to_string(facts_.size())},
                                              {"cuda driver", version_text(driver)},
                                              {"cuda runtime", version_text(runtime)}};
  if (const std::string cudnn = CudnnAttention::version(); !cudnn.empty()) facts["cudnn"] = cudnn;
  if (const std::string nccl = nccl_version(); !nccl.empty()) facts["nccl"] = nccl;
  return facts;
}

std::byte* CudaRuntime::allocate(int device, Bytes bytes) {
  RING_CUDA_CHECK(cudaSetDevice(device));
  void* at = nullptr;
  const auto size = static_cast<size_t>(std::max<Bytes>(bytes, 1));
  RING_CUDA_CHECK(cudaMalloc(&at, size));
  memory_[static_cast<const std::byte*>(at)] = {bytes, device};
  RING_CUDA_CHECK(cudaMemset(at, 0, size));
  return static_cast<std::byte*>(at);
}

void CudaRuntime::upload(std::byte* to, std::span<const std::byte> from) {
  synchronize();
  RING_CUDA_CHECK(cudaMemcpy(to, from.data(), from.size(), cudaMemcpyHostToDevice));
}

void CudaRuntime::download(std::span<std::byte> to, const std::byte* from) {
  synchronize();
  RING_CUDA_CHECK(cudaMemcpy(to.data(), from, to.size(), cudaMemcpyDeviceToHost));
}

int CudaRuntime::create_stream(int device, bool is_urgent) {
  RING_CUDA_CHECK(cudaSetDevice(device));
  int least = 0, greatest = 0;
  RING_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  Stream own;
  own.device = device;
  RING_CUDA_CHECK(cudaStreamCreateWithPriority(&own.handle, cudaStreamNonBlocking,
                                               is_urgent ? greatest : least));
  streams_.push_back(own);
  return static_cast<int>(streams_.size()) - 1;
}

int CudaRuntime::create_event(int device) {
  RING_CUDA_CHECK(cudaSetDevice(device));
  events_.push_back({nullptr, device});
  RING_CUDA_CHECK(cudaEventCreateWithFlags(&events_.back().handle, cudaEventDisableTiming));
  return static_cast<int>(events_.size()) - 1;
}

int CudaRuntime::create_stamp(int device) {
  RING_CUDA_CHECK(cudaSetDevice(device));
  stamps_.push_back({nullptr, device});
  RING_CUDA_CHECK(cudaEventCreate(&stamps_.back().handle));
  return static_cast<int>(stamps_.size()) - 1;
}

void CudaRuntime::record(int stream_id, int event) {
  RING_CUDA_CHECK(
      cudaEventRecord(events_[static_cast<size_t>(event)].handle, stream(stream_id).handle));
}

void CudaRuntime::wait(int stream_id, int event) {
  RING_CUDA_CHECK(
      cudaStreamWaitEvent(stream(stream_id).handle, events_[static_cast<size_t>(event)].handle, 0));
}

void CudaRuntime::stamp(int stream_id, int stamp) {
  // Within a capture an event of its own node: it is recorded at every replay.
  const unsigned flags = is_capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault;
  RING_CUDA_CHECK(cudaEventRecordWithFlags(stamps_[static_cast<size_t>(stamp)].handle,
                                           stream(stream_id).handle, flags));
}

int CudaRuntime::device_of(const std::byte* at) const {
  auto block = memory_.upper_bound(at);
  RING_ASSERT(block != memory_.begin());
  return std::prev(block)->second.second;
}

void CudaRuntime::copy(int stream_id, std::byte* to, const std::byte* from, Bytes bytes) {
  const int to_device = device_of(to), from_device = device_of(from);
  const auto size = static_cast<size_t>(bytes);
  const cudaStream_t handle = stream(stream_id).handle;
  if (to_device == from_device) {
    RING_CUDA_CHECK(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, handle));
  } else {
    RING_CUDA_CHECK(cudaMemcpyPeerAsync(to, to_device, from, from_device, size, handle));
  }
}

void CudaRuntime::exchange(std::span<const ExchangePart> parts, std::span<const int> streams) {
  if (comms_ == nullptr)
    throw Error(ErrorKind::kUnavailable, "exchanges need a job of ranks that meet over NCCL");
  std::vector<cudaStream_t> handles;
  for (const int id : streams) handles.push_back(stream(id).handle);
  comms_->exchange(parts, handles);
}

void CudaRuntime::synchronize() {
  for (const Stream& own : streams_) RING_CUDA_CHECK(cudaStreamSynchronize(own.handle));
}

void CudaRuntime::begin_clock() {
  synchronize();
  clock_uncertainty_s_ = kEventResolution_s;
  for (size_t device = 0; device < bases_.size(); ++device) {
    RING_CUDA_CHECK(cudaSetDevice(static_cast<int>(device)));
    const double before_s = host_s();
    RING_CUDA_CHECK(cudaEventRecord(bases_[device].handle, base_streams_[device]));
    RING_CUDA_CHECK(cudaEventSynchronize(bases_[device].handle));
    const double after_s = host_s();
    base_s_[device] = (before_s + after_s) / 2;
    if (bases_.size() > 1)
      clock_uncertainty_s_ =
          std::max(clock_uncertainty_s_, kEventResolution_s + (after_s - before_s));
  }
}

double CudaRuntime::stamp_s(int stamp) {
  const Event& at = stamps_[static_cast<size_t>(stamp)];
  const auto device = static_cast<size_t>(at.device);
  RING_CUDA_CHECK(cudaSetDevice(at.device));
  float since_base_ms = 0;
  RING_CUDA_CHECK(cudaEventElapsedTime(&since_base_ms, bases_[device].handle, at.handle));
  return base_s_[device] - base_s_.front() + static_cast<double>(since_base_ms) * 1e-3;
}

}  // namespace ring::cuda
