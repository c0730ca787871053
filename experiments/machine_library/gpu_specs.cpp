#include "experiments/machine_library/gpu_specs.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "core/error.h"

namespace ring {
namespace {

constexpr Bytes kGiB = Bytes{1} << 30;
constexpr double kPcie4 = 31.5e9, kPcie5 = 63e9;

// NVIDIA datasheets and architecture papers of each GPU. The H100 of 500 W is the one that Meta
// describes for its Grand Teton machines: HBM2e at 2.4 TB/s, 800 TFLOP/s of bf16.
constexpr std::array<GpuSpec, 8> kGpus{{
    {"a100-sxm", "A100 SXM4 80 GB", 108, 1.41e9, 312e12, 2.039e12, 80 * kGiB, 300e9, kPcie4},
    {"a100-pcie", "A100 PCIe 80 GB", 108, 1.41e9, 312e12, 1.935e12, 80 * kGiB, 0, kPcie4},
    {"a800-sxm", "A800 SXM4 80 GB", 108, 1.41e9, 312e12, 2.039e12, 80 * kGiB, 200e9, kPcie4},
    {"h100-sxm", "H100 SXM5 80 GB", 132, 1.83e9, 989e12, 3.35e12, 80 * kGiB, 450e9, kPcie5},
    {"h100-500w", "H100 SXM5 96 GB, 500 W", 132, 1.48e9, 800e12, 2.4e12, 96 * kGiB, 450e9, kPcie5},
    {"h200-sxm", "H200 SXM5 141 GB", 132, 1.83e9, 989e12, 4.8e12, 141 * kGiB, 450e9, kPcie5},
    {"h800-sxm", "H800 SXM5 80 GB", 132, 1.83e9, 989e12, 3.35e12, 80 * kGiB, 200e9, kPcie5},
    {"l20", "L20 PCIe 48 GB", 92, 2.52e9, 119.5e12, 0.864e12, 48 * kGiB, 0, kPcie4},
}};

}  // namespace

std::span<const GpuSpec> gpu_specs() { return kGpus; }

const GpuSpec& gpu_spec(std::string_view name) {
  for (const GpuSpec& gpu : kGpus) {
    if (gpu.name == name) return gpu;
  }
  throw_usage(fmt::format("no GPU '{}' in the machine library", name));
}

}  // namespace ring
