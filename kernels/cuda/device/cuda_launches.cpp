// Which kernels a CudaRuntime launches, and how.
#include <fmt/format.h>

#include <set>
#include <string>

#include "core/error.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/cuda_runtime.h"
#include "kernels/cuda/state_kernels.h"

namespace ring::cuda {

const CompiledKernel* CudaRuntime::forward_for(int device, DType dtype, int dim_qk,
                                               int dim_v) const {
  const DeviceFacts& facts = facts_[static_cast<size_t>(device)];
  const CompiledKernel* fallback = nullptr;
  for (const CompiledKernel& kernel : forward_) {
    if (kernel.dtype != dtype || kernel.dim_qk != dim_qk || kernel.dim_v != dim_v) continue;
    if (kernel.shared_bytes > facts.shared_bytes) continue;
    // A multiprocessor keeps 1 KB of its shared memory for every block.
    if ((kernel.shared_bytes + 1024) * kernel.blocks_per_sm <= facts.shared_sm_bytes)
      return &kernel;
    if (fallback == nullptr) fallback = &kernel;
  }
  return fallback;
}

void CudaRuntime::require_attend(int device, DType dtype, int dim_qk, int dim_v) const {
  if (forward_for(device, dtype, dim_qk, dim_v) != nullptr) return;
  std::set<std::string> dims;
  for (const CompiledKernel& kernel : forward_) {
    if (kernel.shared_bytes <= facts(device).shared_bytes)
      dims.insert(kernel.dim_qk == kernel.dim_v
                      ? std::to_string(kernel.dim_qk)
                      : fmt::format("{} with {} for V", kernel.dim_qk, kernel.dim_v));
  }
  throw Error(ErrorKind::kUnavailable,
              fmt::format("no kernel attends with head dims {} and {} in {} on {}", dim_qk, dim_v,
                          name(dtype), facts(device).name),
              fmt::format("there are: {}", fmt::join(dims, ", ")));
}

template <class Params>
void CudaRuntime::launch_kernel(int stream_id, const CompiledKernel& kernel,
                                const simt::LaunchShape& shape, const Params& params) {
  if (shape.grid_x == 0) return;
  RING_CUDA_CHECK(cudaSetDevice(stream(stream_id).device));
  constexpr int kWithoutAsking = 48 << 10;
  if (shape.shared_bytes > kWithoutAsking) {
    RING_CUDA_CHECK(cudaFuncSetAttribute(
        kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, shape.shared_bytes));
  }
  Params copy = params;
  void* arguments[] = {&copy};
  const dim3 grid(static_cast<unsigned>(shape.grid_x), static_cast<unsigned>(shape.grid_y),
                  static_cast<unsigned>(shape.grid_z));
  RING_CUDA_CHECK(
      cudaLaunchKernel(kernel.function, grid, dim3(static_cast<unsigned>(shape.threads)), arguments,
                       static_cast<size_t>(shape.shared_bytes), stream(stream_id).handle));
}

void CudaRuntime::launch(int stream_id, const KernelCall& call) {
  std::visit([&](const auto& one) { launch_one(stream_id, one); }, call);
}

void CudaRuntime::launch_one(int stream_id, const AttendCall& call) {
  const CompiledKernel* const kernel =
      forward_for(stream(stream_id).device, call.dtype, call.dim_qk, call.dim_v);
  RING_ASSERT(kernel != nullptr);
  const simt::LaunchShape shape{(call.params.q_rows + kernel->rows - 1) / kernel->rows, call.heads,
                                call.batch, kernel->threads, kernel->shared_bytes};
  launch_kernel(stream_id, *kernel, shape, call.params);
}

void CudaRuntime::launch_one(int stream_id, const FinalizeCall& call) {
  const FinalizeParams& p = call.params;
  launch_kernel(stream_id, state_kernel(StateKernel::kFinalize, call.dtype),
                state_shape(p.rows, call.heads, call.batch, p.dim_v), p);
}

void CudaRuntime::launch_one(int stream_id, const MergeCall& call) {
  const MergeStateParams& p = call.params;
  launch_kernel(stream_id, state_kernel(StateKernel::kMergeState, DType::kBF16),
                state_shape(p.rows, call.heads, call.batch, p.dim_v), p);
}

void CudaRuntime::launch_one(int stream_id, const ResetCall& call) {
  const ResetStateParams& p = call.params;
  launch_kernel(stream_id, state_kernel(StateKernel::kReset, DType::kBF16),
                state_shape(p.rows, call.heads, call.batch, p.dim_v), p);
}

void CudaRuntime::launch_one(int stream_id, const BackwardCall& call) {
  const BackwardParams& p = call.params;
  for (const BackwardPair& pair : backward_) {
    const CompiledKernel& rows = pair.rows;
    if (rows.dtype != call.dtype || rows.dim_qk != call.dim_qk || rows.dim_v != call.dim_v)
      continue;
    const int row_tiles = (p.q_rows + rows.rows - 1) / rows.rows;
    const int key_tiles = (p.kv_rows + rows.keys - 1) / rows.keys;
    launch_kernel(stream_id, rows,
                  {row_tiles * rows.parts, call.heads, call.batch, rows.threads, rows.shared_bytes},
                  p);
    launch_kernel(
        stream_id, pair.keys,
        {key_tiles * rows.parts, call.heads / p.group, call.batch, rows.threads, rows.shared_bytes},
        p);
    return;
  }
  throw Error(ErrorKind::kUnavailable, fmt::format("no kernel has gradients of head dims {} and {}",
                                                   call.dim_qk, call.dim_v));
}

void CudaRuntime::launch_one(int stream_id, const DeltaCall& call) {
  launch_kernel(stream_id, state_kernel(StateKernel::kDelta, call.dtype),
                delta_shape(call.params.rows, call.heads, call.batch), call.params);
}

void CudaRuntime::launch_one(int stream_id, const SpinCall& call) {
  launch_kernel(stream_id, spin_kernel(), {1, 1, 1, simt::kWarp, 0},
                SpinParams{call.time_ps / 1000});
}

}  // namespace ring::cuda
