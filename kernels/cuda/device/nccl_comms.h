// NcclComms: the NCCL communicators of the ranks of this process.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <span>
#include <string>

#include "kernels/cuda/cuda_device.h"

namespace ring::cuda {

/// NCCL is loaded when a job needs it.
class NcclComms {
 public:
  /// Throws Error(kUnavailable) without NCCL, Error(kRunFailed) when it refuses.
  explicit NcclComms(const NcclJob& job);
  ~NcclComms();

  /// One group; `streams` by part.
  void exchange(std::span<const ExchangePart> parts, std::span<const cudaStream_t> streams);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

NcclId nccl_id();
/// "2.28.9", or "" without NCCL.
std::string nccl_version();

}  // namespace ring::cuda
