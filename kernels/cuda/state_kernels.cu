// The kernels over states and outputs, and the list of all forward kernels.
#include "kernels/cuda/state_kernels.h"

#include "core/error.h"
#include "kernels/cuda/forward_kernel.cuh"

namespace ring::cuda {
namespace {

using simt::DeviceLane;

template <class Element>
__global__ void __launch_bounds__(kStateThreads)
    finalize_kernel(const __grid_constant__ FinalizeParams params) {
  DeviceLane lane;
  finalize<Element>(lane, params);
}
__global__ void __launch_bounds__(kStateThreads)
    merge_state_kernel(const __grid_constant__ MergeStateParams params) {
  DeviceLane lane;
  merge_state(lane, params);
}
__global__ void __launch_bounds__(kStateThreads)
    merge_output_kernel(const __grid_constant__ MergeOutputParams params) {
  DeviceLane lane;
  merge_output(lane, params);
}
__global__ void __launch_bounds__(kStateThreads)
    reset_kernel(const __grid_constant__ ResetStateParams params) {
  DeviceLane lane;
  reset_state(lane, params);
}
__global__ void __launch_bounds__(kStateThreads)
    normalize_kernel(const __grid_constant__ ResetStateParams params) {
  DeviceLane lane;
  normalize_state(lane, params);
}
__global__ void __launch_bounds__(kStateThreads)
    complete_kernel(const __grid_constant__ ResetStateParams params) {
  DeviceLane lane;
  complete_state(lane, params);
}
__global__ void __launch_bounds__(kStateThreads)
    add_kernel(const __grid_constant__ AddParams params) {
  DeviceLane lane;
  add_all(lane, params);
}
template <class Element>
__global__ void __launch_bounds__(kStateThreads)
    absorb_kernel(const __grid_constant__ AbsorbParams params) {
  DeviceLane lane;
  absorb_output<Element>(lane, params);
}
template <class Element>
__global__ void __launch_bounds__(kStateThreads)
    delta_kernel(const __grid_constant__ DeltaParams params) {
  DeviceLane lane;
  row_delta<Element>(lane, params);
}
template <class Element>
__global__ void __launch_bounds__(kStateThreads)
    narrow_kernel(const __grid_constant__ ConvertParams params) {
  DeviceLane lane;
  narrow_all<Element>(lane, params);
}
template <class Element>
__global__ void __launch_bounds__(kStateThreads)
    widen_kernel(const __grid_constant__ ConvertParams params) {
  DeviceLane lane;
  widen_all<Element>(lane, params);
}

__global__ void spin_kernel_function(const __grid_constant__ SpinParams params) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < params.time_ns);
}

template <class Function>
const void* pointer(Function* function) {
  return reinterpret_cast<const void*>(function);
}

template <class Element>
const void* function_of(StateKernel kernel) {
  switch (kernel) {
    case StateKernel::kFinalize:
      return pointer(&finalize_kernel<Element>);
    case StateKernel::kMergeState:
      return pointer(&merge_state_kernel);
    case StateKernel::kMergeOutput:
      return pointer(&merge_output_kernel);
    case StateKernel::kReset:
      return pointer(&reset_kernel);
    case StateKernel::kDelta:
      return pointer(&delta_kernel<Element>);
    case StateKernel::kNarrow:
      return pointer(&narrow_kernel<Element>);
    case StateKernel::kWiden:
      return pointer(&widen_kernel<Element>);
    case StateKernel::kNormalize:
      return pointer(&normalize_kernel);
    case StateKernel::kComplete:
      return pointer(&complete_kernel);
    case StateKernel::kAdd:
      return pointer(&add_kernel);
    case StateKernel::kAbsorb:
      return pointer(&absorb_kernel<Element>);
  }
  return nullptr;
}

}  // namespace

std::vector<CompiledKernel> forward_kernels() {
  std::vector<CompiledKernel> kernels;
  add_forward_64(kernels);
  add_forward_96(kernels);
  add_forward_128(kernels);
  add_forward_192(kernels);
  add_forward_256(kernels);
  return kernels;
}

CompiledKernel state_kernel(StateKernel kernel, DType dtype) {
  CompiledKernel compiled;
  compiled.function =
      dtype == DType::kF16 ? function_of<simt::F16>(kernel) : function_of<simt::Bf16>(kernel);
  compiled.name = "state";
  compiled.dtype = dtype;
  compiled.threads = kStateThreads;
  return compiled;
}

CompiledKernel spin_kernel() {
  CompiledKernel compiled;
  compiled.function = pointer(&spin_kernel_function);
  compiled.name = "spin";
  compiled.threads = simt::kWarp;
  return compiled;
}

}  // namespace ring::cuda
