#include "kernels/cuda/device/tensor_map.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "core/error.h"
#include "kernels/cuda/device/check.h"

namespace ring::cuda {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);
static_assert(sizeof(CUtensorMap) == sizeof(simt::TensorMap));

/// Looked up at run time: the program does not link with the driver.
Encode encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  constexpr unsigned kSince = 12000;  // The version that brought it.
  RING_CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kSince,
                                                   cudaEnableDefault, &found));
#else
  RING_CUDA_CHECK(
      cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    throw Error(ErrorKind::kUnavailable, "the CUDA driver has no bulk tensor copies",
                "update it, or choose the mma kernels");
  return reinterpret_cast<Encode>(function);
}

}  // namespace

simt::TensorMap encode_tensor_map(const simt::TensorShape& shape) {
  constexpr cuuint32_t kRank = 4;
  cuuint64_t extents[kRank], strides[kRank - 1];
  for (size_t i = 0; i < kRank; ++i) extents[i] = static_cast<cuuint64_t>(shape.extents[i]);
  for (size_t i = 1; i < kRank; ++i)
    strides[i - 1] = static_cast<cuuint64_t>(shape.stride_bytes[i]);
  const cuuint32_t box[kRank] = {static_cast<cuuint32_t>(shape.box_columns),
                                 static_cast<cuuint32_t>(shape.box_rows), 1, 1};
  const cuuint32_t element_strides[kRank] = {1, 1, 1, 1};
  CUtensorMap encoded{};
  // Elements are only moved: any 16-bit type will do.
  const CUresult result = encode_function()(
      &encoded, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, kRank, const_cast<void*>(shape.data), extents,
      strides, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
      shape.is_swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw Error(ErrorKind::kRunFailed, fmt::format("the driver refuses to describe a tensor ({})",
                                                   static_cast<int>(result)));
  simt::TensorMap map;
  std::memcpy(map.words, &encoded, sizeof encoded);
  return map;
}

}  // namespace ring::cuda
