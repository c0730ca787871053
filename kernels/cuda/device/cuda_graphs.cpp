// How a CudaRuntime captures calls as a CUDA graph and launches it.
#include "core/error.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/cuda_runtime.h"

namespace ring::cuda {

void CudaRuntime::fork(std::span<const int> streams) {
  const int event = create_event(stream(streams.front()).device);
  record(streams.front(), event);
  for (const int id : streams.subspan(1)) wait(id, event);
}

void CudaRuntime::join(std::span<const int> streams) {
  for (const int id : streams.subspan(1)) {
    const int event = create_event(stream(id).device);
    record(id, event);
    wait(streams.front(), event);
  }
}

int CudaRuntime::capture(std::span<const int> streams, const std::function<void()>& enqueue) {
  RING_ASSERT(!streams.empty());
  synchronize();
  const cudaStream_t origin = stream(streams.front()).handle;
  if (cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed) != cudaSuccess) {
    cudaGetLastError();
    return kNotCaptured;
  }
  is_capturing_ = true;
  bool is_captured = true;
  try {
    fork(streams);
    enqueue();
    join(streams);
  } catch (const Error&) {
    is_captured = false;  // What cannot be captured is called directly, and then throws again.
  }
  is_capturing_ = false;
  cudaGraph_t graph = nullptr;
  const bool has_ended = cudaStreamEndCapture(origin, &graph) == cudaSuccess && graph != nullptr;
  cudaGraphExec_t handle = nullptr;
  is_captured = is_captured && has_ended && cudaGraphInstantiate(&handle, graph, 0) == cudaSuccess;
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (!is_captured) {
    cudaGetLastError();
    return kNotCaptured;
  }
  graphs_.push_back({handle, streams.front()});
  return static_cast<int>(graphs_.size()) - 1;
}

void CudaRuntime::replay(int captured) {
  const Graph& graph = graphs_[static_cast<size_t>(captured)];
  RING_CUDA_CHECK(cudaSetDevice(stream(graph.stream).device));
  RING_CUDA_CHECK(cudaGraphLaunch(graph.handle, stream(graph.stream).handle));
}

}  // namespace ring::cuda
