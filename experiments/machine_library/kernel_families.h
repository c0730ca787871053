// Kernel families: FlashAttention-2, -3 and cuDNN on each GPU, fitted to published curves or
// derived.
#pragma once

#include <map>
#include <string>

#include "core/calibration.h"
#include "core/machine.h"
#include "experiments/machine_library/gpu_specs.h"

namespace ring {

/// Kernels of one GPU with what is known about them.
struct KernelKnowledge {
  std::map<std::string, KernelFamily> families;
  std::string default_family;
  std::map<std::string, std::string> provenance;  ///< "kernels fa2" -> where its values come from.
  Calibration calibration;
};

/// Reads the calibration files of `folder` once and fits every family; then answers for each GPU.
class KernelFamilies {
 public:
  /// Throws Error(kUsage) for a file that is missing or has none of the rows that are needed.
  explicit KernelFamilies(const std::string& folder);

  KernelKnowledge of(const GpuSpec& gpu) const;

 private:
  KernelKnowledge hopper_, hopper_cudnn_, ampere_;
  void fit_hopper(const std::string& folder);
  void fit_cudnn(const std::string& folder);
  void fit_ampere(const std::string& folder);
};

}  // namespace ring
