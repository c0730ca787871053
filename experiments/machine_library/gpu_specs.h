// GPU specifications: what makers state about the GPUs of the machine library.
#pragma once

#include <span>
#include <string_view>

#include "core/units.h"

namespace ring {

struct GpuSpec {
  std::string_view name;   ///< "a100-sxm".
  std::string_view model;  ///< For people.
  int multiprocessors = 0;
  double boost_hz = 0;
  double tensor_flops = 0;  ///< Dense fp16 with fp32 accumulation.
  double memory_bytes_per_s = 0;
  Bytes memory_bytes = 0;
  double nvlink_bytes_per_s = 0;  ///< Each way; 0: none.
  double pcie_bytes_per_s = 0;    ///< Each way, line rate less encoding.
};

std::span<const GpuSpec> gpu_specs();
/// Throws Error(kUsage) for an unknown name.
const GpuSpec& gpu_spec(std::string_view name);

}  // namespace ring
