// The driver's encoding of the tensors that bulk tensor copies read.
#pragma once

#include "kernels/simt/tensor_map.h"

namespace ring::cuda {

/// Throws Error(kRunFailed) for a shape that the driver does not take, Error(kUnavailable) where
/// the driver is too old for such copies.
simt::TensorMap encode_tensor_map(const simt::TensorShape& shape);

}  // namespace ring::cuda
