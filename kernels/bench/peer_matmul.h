// Products of bf16 matrices by oneDNN's matmul primitives.
#pragma once

#include "kernels/bench/peers.h"

namespace ring::bench {

// bf16 A and B, fp32 C. The primitive of a shape is made on its first call and kept. Empty where
// oneDNN is absent or has no code for such products on this CPU.
Gemm onednn_bf16_gemm();

}  // namespace ring::bench
