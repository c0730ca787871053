#include "core/machine_presets.h"

#include <fmt/format.h>

#include <array>
#include <string>

#include "core/error.h"
#include "core/topology_shapes.h"

namespace ring {
namespace {

struct GpuSpec {
  std::string_view name;
  std::string_view model;
  double attend_flops;  ///< Forward attention, head dim 128, long sequences, bf16 or fp16.
  std::string_view attend_source;
  double backward_flops;  ///< The same of the backward pass.
  std::string_view backward_source;
  double memory_bytes_per_s;
  Bytes capacity_bytes;
  bool has_bf16;
};

constexpr Bytes kGiB = Bytes{1} << 30;

constexpr std::array<GpuSpec, 3> kGpus{{
    {"a100", "A100 SXM4 80 GB", 200e12, "FlashAttention-2 charts: 200 of 312 TFLOP/s", 180e12,
     "assumed: 0.9 of the forward rate, as FlashAttention-2 charts show", 2.039e12, 80 * kGiB,
     true},
    {"h100", "H100 SXM5 80 GB", 640e12, "FlashAttention-3 charts: 640 of 989 TFLOP/s", 512e12,
     "assumed: 0.8 of the forward rate, as FlashAttention-3 charts show", 3.35e12, 80 * kGiB, true},
    {"v100", "V100 SXM2 32 GB", 62e12, "assumed: half of the 125 TFLOP/s of the datasheet", 50e12,
     "assumed: 0.8 of the forward rate", 0.9e12, 32 * kGiB, false},
}};

/// The GPU that a named box is made of; empty for shapes of any GPU.
std::string_view gpu_of_shape(std::string_view shape) {
  if (shape == "dgx-a100" || shape == "pcie-box") return "a100";
  if (shape == "hgx-h100") return "h100";
  if (shape == "dgx-1v") return "v100";
  return {};
}

const GpuSpec& find_gpu(std::string_view name) {
  std::array<std::string_view, kGpus.size()> names;
  for (size_t i = 0; i < kGpus.size(); ++i) {
    if (kGpus[i].name == name) return kGpus[i];
    names[i] = kGpus[i].name;
  }
  const std::string near = nearest_spelling(name, names.data(), static_cast<int>(names.size()));
  throw_usage(fmt::format("there is no GPU preset '{}'{}", name,
                          near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
              "GPU presets are a100, h100, v100");
}

/// Takes "gpu=NAME" out of the list of keys; returns NAME or nothing.
std::string take_gpu(std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return {};
  constexpr std::string_view kKey = "gpu=";
  for (size_t at = colon + 1; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (std::string_view(text).substr(at).starts_with(kKey)) {
      std::string gpu = text.substr(at + kKey.size(), end - at - kKey.size());
      text.erase(at, std::min(end + 1, text.size()) - at);
      if (text.ends_with(',') || text.ends_with(':')) text.pop_back();
      if (gpu.empty()) throw_usage("'gpu=' names no GPU", "GPU presets are a100, h100, v100");
      return gpu;
    }
    at = end + 1;
  }
  return {};
}

void set_costs(const GpuSpec& gpu, Machine& machine) {
  AttendCost attend;
  attend.launch_s = 5e-6;
  attend.per_pair_dim_s = 2 / gpu.attend_flops;
  machine.attend[DType::kF16] = attend;
  if (gpu.has_bf16) machine.attend[DType::kBF16] = attend;
  AttendCost backward = attend;
  backward.per_pair_dim_s = 2 / gpu.backward_flops;
  machine.backward[DType::kF16] = backward;
  if (gpu.has_bf16) machine.backward[DType::kBF16] = backward;
  machine.copy = {5e-6, gpu.memory_bytes_per_s / 2};
  machine.merge_bytes_per_s = gpu.memory_bytes_per_s;
  machine.wakeup_s = 2e-6;
  machine.memory_capacity_bytes = gpu.capacity_bytes;
  machine.context["gpu"] = gpu.model;
  machine.provenance["attend"] = gpu.attend_source;
  machine.provenance["backward"] = gpu.backward_source;
  machine.provenance["launch"] = "assumed: 5 us per kernel";
  machine.provenance["wakeup"] = "assumed: 2 us from an event to the waiting stream";
  machine.provenance["memory"] = "datasheet: bandwidth and capacity of the GPU memory";
}

}  // namespace

bool is_machine_preset(std::string_view text) { return is_shape_name(text); }

Machine machine_preset(std::string_view text) {
  std::string shape_text(text);
  const std::string given = take_gpu(shape_text);
  const std::string_view fixed = gpu_of_shape(text.substr(0, text.find(':')));
  if (!given.empty() && !fixed.empty() && given != fixed) {
    throw_usage(
        fmt::format("'{}' is made of {}, not {}", text.substr(0, text.find(':')), fixed, given),
        "take 'cluster:nodes=N,gpus=M,gpu=NAME' for other GPUs");
  }
  Shape shape = make_shape(shape_text);
  shape.name = text;
  return machine_of_shape(std::move(shape), !fixed.empty()  ? fixed
                                            : given.empty() ? "a100"
                                                            : std::string_view(given));
}

Machine machine_of_shape(Shape shape, std::string_view gpu) {
  Machine machine;
  machine.name = std::move(shape.name);
  machine.topology = std::move(shape.topology);
  machine.processors = std::move(shape.processors);
  machine.provenance = std::move(shape.provenance);
  set_costs(find_gpu(gpu), machine);
  return machine;
}

}  // namespace ring
