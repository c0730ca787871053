// Which kernels a CudaRuntime launches, and how.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/error.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/cuda_runtime.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/hopper_forward.h"
#include "kernels/cuda/state_kernels.h"

namespace ring::cuda {

namespace {

bool is_for(const CompiledKernel& kernel, DType dtype, int dim_qk, int dim_v) {
  return kernel.dtype == dtype && kernel.dim_qk == dim_qk && kernel.dim_v == dim_v;
}

std::string dims_text(const CompiledKernel& kernel) {
  return kernel.dim_qk == kernel.dim_v
             ? std::to_string(kernel.dim_qk)
             : fmt::format("{} with {} for V", kernel.dim_qk, kernel.dim_v);
}

}  // namespace

const CompiledKernel* CudaRuntime::hopper_for(int device, DType dtype, int dim_qk,
                                              int dim_v) const {
  for (const CompiledKernel& kernel : hopper_) {
    if (kernel.capability == facts_[static_cast<size_t>(device)].capability &&
        is_for(kernel, dtype, dim_qk, dim_v))
      return &kernel;
  }
  return nullptr;
}

const CompiledKernel* CudaRuntime::forward_for(int device, DType dtype, int dim_qk,
                                               int dim_v) const {
  const CompiledKernel* const hopper =
      kernels_ == AttendKernels::kMma ? nullptr : hopper_for(device, dtype, dim_qk, dim_v);
  return hopper != nullptr ? hopper : mma_for(device, dtype, dim_qk, dim_v);
}

std::string CudaRuntime::attend_kernel(int device, DType dtype, int dim_qk, int dim_v) const {
  const CompiledKernel* const kernel = forward_for(device, dtype, dim_qk, dim_v);
  if (kernel == nullptr) return "none";
  const bool is_hopper = kernel->capability != 0;
  std::string text;
  if (kernels_ == AttendKernels::kCudnn) text = "cuDNN where all rows see the block, else ";
  text += fmt::format("{}, tiles of {} x {}", is_hopper ? "wgmma" : "mma.sync", kernel->rows,
                      kernel->keys);
  const bool could_hopper = facts(device).capability == 90 && kernels_ != AttendKernels::kMma;
  if (!is_hopper && could_hopper)
    text += fmt::format(" (no wgmma kernel has head dims {} and {})", dim_qk, dim_v);
  return text;
}

const CompiledKernel* CudaRuntime::mma_for(int device, DType dtype, int dim_qk, int dim_v) const {
  const DeviceFacts& facts = facts_[static_cast<size_t>(device)];
  const CompiledKernel* fallback = nullptr;
  for (const CompiledKernel& kernel : forward_) {
    if (!is_for(kernel, dtype, dim_qk, dim_v)) continue;
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
    if (kernel.shared_bytes <= facts(device).shared_bytes) dims.insert(dims_text(kernel));
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

bool CudaRuntime::is_for_cudnn(const AttendCall& call) const {
  return kernels_ == AttendKernels::kCudnn && call.params.spans == nullptr &&
         call.params.q_rows > 0 && call.params.kv_rows > 0;
}

void CudaRuntime::prepare(int stream_id, const KernelCall& call) {
  const auto* const attend = std::get_if<AttendCall>(&call);
  if (attend == nullptr || !is_for_cudnn(*attend)) return;
  RING_CUDA_CHECK(cudaSetDevice(stream(stream_id).device));
  cudnn_.try_emplace(stream_id, stream(stream_id).handle).first->second.prepare(*attend);
}

void CudaRuntime::launch_cudnn(int stream_id, const AttendCall& call) {
  if (!is_capturing_) prepare(stream_id, call);
  RING_CUDA_CHECK(cudaSetDevice(stream(stream_id).device));
  CudnnAttention& cudnn = cudnn_.at(stream_id);
  cudnn.run(call);
  AbsorbParams p;
  p.to = call.params.state;
  p.out = cudnn.out();
  p.lse = cudnn.lse();
  p.head_stride = call.params.q_rows;
  p.batch_stride = p.head_stride * call.heads;
  p.rows = call.params.q_rows;
  p.dim_v = call.dim_v;
  p.starts_state = call.params.starts_state;
  launch_kernel(stream_id, state_kernel(StateKernel::kAbsorb, call.dtype),
                state_shape(p.rows, call.heads, call.batch, p.dim_v), p);
}

void CudaRuntime::launch_one(int stream_id, const AttendCall& call) {
  if (is_for_cudnn(call)) {
    launch_cudnn(stream_id, call);
    return;
  }
  const CompiledKernel* const kernel =
      forward_for(stream(stream_id).device, call.dtype, call.dim_qk, call.dim_v);
  RING_ASSERT(kernel != nullptr);
  const simt::LaunchShape shape{(call.params.q_rows + kernel->rows - 1) / kernel->rows, call.heads,
                                call.batch, kernel->threads, kernel->shared_bytes};
  if (kernel->capability == 0) {
    launch_kernel(stream_id, *kernel, shape, call.params);
    return;
  }
  if (shape.grid_x == 0) return;
  // Without keys there is nothing to describe; the kernel then copies none.
  ForwardParams described = call.params;
  described.kv_rows = std::max(described.kv_rows, 1);
  const HopperTensors tensors =
      hopper_tensors(described, call.dim_qk, call.heads, call.batch, kernel->rows, kernel->keys);
  launch_kernel(stream_id, *kernel, shape,
                HopperParams{encode_tensor_map(tensors.q), encode_tensor_map(tensors.k),
                             encode_tensor_map(tensors.v), call.params});
}

/// A kernel over the rows of all heads and batch elements of a state.
template <class Call>
void CudaRuntime::launch_over_states(int stream_id, StateKernel kernel, DType dtype,
                                     const Call& call) {
  const auto& p = call.params;
  launch_kernel(stream_id, state_kernel(kernel, dtype),
                state_shape(p.rows, call.heads, call.batch, p.dim_v), p);
}

void CudaRuntime::launch_one(int stream_id, const FinalizeCall& call) {
  launch_over_states(stream_id, StateKernel::kFinalize, call.dtype, call);
}

void CudaRuntime::launch_one(int stream_id, const MergeCall& call) {
  launch_over_states(stream_id, StateKernel::kMergeState, DType::kBF16, call);
}

void CudaRuntime::launch_one(int stream_id, const ResetCall& call) {
  launch_over_states(stream_id, StateKernel::kReset, DType::kBF16, call);
}

void CudaRuntime::launch_one(int stream_id, const NormalizeCall& call) {
  launch_over_states(stream_id, StateKernel::kNormalize, DType::kBF16, call);
}

void CudaRuntime::launch_one(int stream_id, const CompleteCall& call) {
  launch_over_states(stream_id, StateKernel::kComplete, DType::kBF16, call);
}

void CudaRuntime::launch_one(int stream_id, const AddCall& call) {
  launch_kernel(stream_id, state_kernel(StateKernel::kAdd, DType::kBF16),
                convert_shape(call.params.count * call.params.rows), call.params);
}

void CudaRuntime::launch_one(int stream_id, const ClearCall& call) {
  if (call.bytes == 0) return;
  RING_CUDA_CHECK(cudaSetDevice(stream(stream_id).device));
  RING_CUDA_CHECK(
      cudaMemsetAsync(call.data, 0, static_cast<size_t>(call.bytes), stream(stream_id).handle));
}

void CudaRuntime::launch_one(int stream_id, const CopyRowsCall& call) {
  if (call.bytes == 0 || call.rows == 0) return;
  RING_CUDA_CHECK(cudaSetDevice(stream(stream_id).device));
  const auto size = [](Bytes bytes) { return static_cast<size_t>(bytes); };
  // The pitch of a single row is not looked at, but it may not be less than the row.
  RING_CUDA_CHECK(cudaMemcpy2DAsync(call.to, size(std::max(call.to_pitch, call.bytes)), call.from,
                                    size(std::max(call.from_pitch, call.bytes)), size(call.bytes),
                                    size(call.rows), cudaMemcpyDeviceToDevice,
                                    stream(stream_id).handle));
}

void CudaRuntime::require_backward(int device, DType dtype, int dim_qk, int dim_v) const {
  const auto fits = [&](const BackwardPair& pair) {
    return is_for(pair.rows, dtype, dim_qk, dim_v) &&
           pair.rows.shared_bytes <= facts(device).shared_bytes;
  };
  if (std::any_of(backward_.begin(), backward_.end(), fits)) return;
  std::set<std::string> dims;
  for (const BackwardPair& pair : backward_) {
    if (pair.rows.shared_bytes <= facts(device).shared_bytes) dims.insert(dims_text(pair.rows));
  }
  throw Error(ErrorKind::kUnavailable,
              fmt::format("no kernel has gradients of head dims {} and {} in {} on {}", dim_qk,
                          dim_v, name(dtype), facts(device).name),
              fmt::format("there are: {}", fmt::join(dims, ", ")));
}

void CudaRuntime::launch_one(int stream_id, const BackwardCall& call) {
  const BackwardParams& p = call.params;
  for (const BackwardPair& pair : backward_) {
    const CompiledKernel& rows = pair.rows;
    if (!is_for(rows, call.dtype, call.dim_qk, call.dim_v)) continue;
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
