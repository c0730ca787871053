// CudnnAttention: cuDNN's fused attention on one stream, a peer to measure the own kernels against.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "kernels/cuda/runtime.h"

namespace ring::cuda {

/// Of blocks of keys that all rows see: out (batch, head, row, dim_v) in the model dtype and lse
/// (batch, head, row), natural log, of the block alone. The library is looked for when it is
/// needed; it takes 9.13 or later. Not run on hardware.
class CudnnAttention {
 public:
  /// Empty without the library; else its version.
  static std::string version();

  /// Describes a call to the library, for which it takes no device; throws Error(kUnavailable) for
  /// what it refuses to hear. Nothing happens without the library.
  static void describe(const AttendCall& call);

  /// On the current device. Throws Error(kUnavailable) without the library.
  explicit CudnnAttention(cudaStream_t stream);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  /// Chooses and compiles what a call of these sizes runs, and takes memory for it. Throws
  /// Error(kUnavailable) where cuDNN has nothing for it.
  void prepare(const AttendCall& call);
  /// `call` as prepared; no memory is taken.
  void run(const AttendCall& call);
  /// Of the call run last.
  const uint16_t* out() const;
  const float* lse() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ring::cuda
