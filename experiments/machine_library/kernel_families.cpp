#include "experiments/machine_library/kernel_families.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/fit.h"
#include "core/formats/file_io.h"
#include "experiments/machine_library/kernel_fit.h"

namespace ring {
namespace {

using TimedPass = KernelPoint::Pass;

constexpr double kShareOfMemoryRate = 0.8;  ///< What streaming kernels reach of the datasheet.
constexpr int kHopper = 132, kAmpere = 108;

/// Tiles of the kernels, from their sources (flash-attention: csrc/flash_attn/src/kernel_traits.h
/// and launch templates, hopper/tile_size.h), and thread blocks of an SM that registers and shared
/// memory allow.
struct Tiles {
  int64_t head_dim, rows, step;
  int blocks_per_sm;
};
constexpr Tiles kFa2Forward[] = {{64, 128, 128, 2}, {128, 128, 64, 2}, {256, 128, 64, 1}};
constexpr Tiles kFa2Backward[] = {{64, 128, 128, 1}, {128, 128, 64, 1}};
constexpr Tiles kFa3Forward[] = {{64, 192, 128, 1}, {128, 128, 128, 1}, {256, 128, 80, 1}};
constexpr Tiles kFa3Backward[] = {{128, 128, 80, 1}};
constexpr Tiles kCudnn[] = {{128, 128, 128, 1}};

TileKernel start_kernel(const Tiles& tiles, int multiprocessors, double flops, bool is_backward) {
  TileKernel kernel;
  kernel.head_dim = tiles.head_dim;
  kernel.tile_rows = tiles.rows;
  kernel.step_tokens = tiles.step;
  kernel.slots = static_cast<int64_t>(multiprocessors) * tiles.blocks_per_sm;
  kernel.slots_per_unit = tiles.blocks_per_sm;
  if (tiles.blocks_per_sm > 1) kernel.alone_speed = 1.5;
  const double per_pair_flops = (is_backward ? 10.0 : 4.0) * static_cast<double>(tiles.head_dim);
  kernel.per_pair_s = per_pair_flops / flops * static_cast<double>(kernel.slots);
  kernel.per_tile_s = 2e-6;
  kernel.launch_s = 5e-6;
  if (is_backward) kernel.per_row_dim_s = 4e-12;
  return kernel;
}

std::vector<KernelPoint> of_pass(const std::vector<KernelPoint>& points, TimedPass pass) {
  std::vector<KernelPoint> chosen;
  std::copy_if(points.begin(), points.end(), std::back_inserter(chosen),
               [&](const KernelPoint& point) { return point.pass == pass; });
  return chosen;
}

std::vector<KernelPoint> joined(std::vector<KernelPoint> a, const std::vector<KernelPoint>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

CsvTable read_table(const std::string& folder, const std::string& file) {
  const std::string path = folder + "/" + file + ".csv";
  return CsvTable::parse(read_file(path), path);
}

std::vector<KernelPoint> need(std::vector<KernelPoint> points, const std::string& what) {
  if (points.size() < 4) throw_usage(fmt::format("too few published rows of {}", what));
  return points;
}

/// Puts what a fit was made of, and how good it is, into the calibration.
void keep(const std::string& probe, std::span<const KernelPoint> points, const KernelFit& fit,
          Calibration& calibration) {
  for (size_t i = 0; i < points.size(); ++i) {
    CalibrationSample sample;
    sample.probe = probe;
    sample.quantities["seq"] = static_cast<double>(points[i].seq);
    sample.quantities["heads"] = static_cast<double>(points[i].heads);
    sample.quantities["batch"] = static_cast<double>(points[i].batch);
    sample.quantities["head_dim"] = static_cast<double>(points[i].head_dim);
    sample.labels["row"] = points[i].id;
    sample.labels["mask"] = points[i].is_causal ? "causal" : "full";
    sample.labels["pass"] = points[i].pass == TimedPass::kForward    ? "forward"
                            : points[i].pass == TimedPass::kBackward ? "backward"
                                                                     : "forward+backward";
    sample.seconds = {points[i].seconds};
    sample.fitted_s = fit.fitted_s[i];
    calibration.samples.push_back(std::move(sample));
  }
  FitQuality quality = fit.quality;
  if (!fit.left_out_errors.empty()) {
    quality.held_out_samples = static_cast<int64_t>(fit.left_out_errors.size());
    quality.held_out_median = median(fit.left_out_errors);
    quality.held_out_worst =
        *std::max_element(fit.left_out_errors.begin(), fit.left_out_errors.end());
  }
  calibration.fits[probe] = quality;
  calibration.parameters[probe + ".per_pair_s"] = {fit.kernel.per_pair_s, fit.kernel.per_pair_s,
                                                   fit.kernel.per_pair_s};
}

constexpr KernelParameter kForwardParameters[] = {
    KernelParameter::kPerPair, KernelParameter::kPerTile, KernelParameter::kLaunch,
    KernelParameter::kAlone};
constexpr KernelParameter kBackwardParameters[] = {
    KernelParameter::kPerPair, KernelParameter::kPerTile, KernelParameter::kPerRowDim,
    KernelParameter::kLaunch};

/// A head dim without a backward curve: pair time in proportion to the forward one.
TileKernel backward_like(const TileKernel& known, const TileKernel& known_forward,
                         const TileKernel& forward) {
  TileKernel kernel = known;
  kernel.head_dim = forward.head_dim;
  const double ratio = (forward.per_pair_s / static_cast<double>(forward.slots)) /
                       (known_forward.per_pair_s / static_cast<double>(known_forward.slots));
  kernel.per_pair_s = known.per_pair_s * ratio;
  return kernel;
}

void set_memory_rate(KernelFamily& family, double memory_bytes_per_s) {
  for (auto* kernels : {&family.forward, &family.backward}) {
    for (TileKernel& kernel : *kernels) {
      kernel.memory_bytes_per_s = kShareOfMemoryRate * memory_bytes_per_s;
    }
  }
}

/// The same programs on another GPU of the same kind: SMs, and a factor on the speed of each.
KernelFamily moved(const KernelFamily& family, int from_sms, int to_sms, double factor) {
  KernelFamily result = family;
  for (auto* kernels : {&result.forward, &result.backward}) {
    for (TileKernel& kernel : *kernels) {
      kernel.slots = kernel.slots / from_sms * to_sms;
      kernel = scaled(kernel, factor);
    }
  }
  return result;
}

}  // namespace

KernelFamilies::KernelFamilies(const std::string& folder) {
  fit_hopper(folder);
  fit_cudnn(folder);
  fit_ampere(folder);
}

void KernelFamilies::fit_hopper(const std::string& folder) {
  const CsvTable figures = read_table(folder, "flash-attention-kernels");
  const CsvTable curves = read_table(folder, "magiattention-kernel-h100");
  const auto figure_points = [&](const char* impl, int64_t dim) {
    return kernel_points(figures, {"H100 80GB SXM5", impl, "fp16", dim});
  };
  const auto curve_points = [&](const char* impl) {
    return kernel_points(curves, {"H100", impl, "bf16", 128});
  };
  Calibration& calibration = hopper_.calibration;
  KernelFamily& fa2 = hopper_.families["fa2"];
  for (const Tiles& tiles : kFa2Forward) {
    std::vector<KernelPoint> points =
        of_pass(figure_points("FlashAttention-2", tiles.head_dim), TimedPass::kForward);
    if (tiles.head_dim == 128)
      points = joined(points, of_pass(curve_points("fa2"), TimedPass::kForward));
    const KernelFit fit =
        fit_kernel(need(points, "FlashAttention-2 forward"),
                   start_kernel(tiles, kHopper, 370e12, false), kForwardParameters, nullptr, true);
    keep(fmt::format("fa2 forward {}", tiles.head_dim), points, fit, calibration);
    fa2.forward.push_back(fit.kernel);
    fa2.forward.back().splits_keys = true;
  }
  for (const Tiles& tiles : kFa2Backward) {
    std::vector<KernelPoint> points =
        of_pass(figure_points("FlashAttention-2", tiles.head_dim), TimedPass::kBoth);
    if (tiles.head_dim == 128) {
      points = joined(points, of_pass(curve_points("fa2"), TimedPass::kBackward));
    }
    const TileKernel forward = kernel_for(fa2.forward, tiles.head_dim);
    const KernelFit fit =
        fit_kernel(need(points, "FlashAttention-2 backward"),
                   start_kernel(tiles, kHopper, 330e12, true), kBackwardParameters, &forward, true);
    keep(fmt::format("fa2 backward {}", tiles.head_dim), points, fit, calibration);
    fa2.backward.push_back(fit.kernel);
  }
  fa2.backward.push_back(backward_like(fa2.backward[1], fa2.forward[1], fa2.forward[2]));

  KernelFamily& fa3 = hopper_.families["fa3"];
  for (const Tiles& tiles : kFa3Forward) {
    const std::vector<KernelPoint> points = tiles.head_dim == 128
                                                ? of_pass(curve_points("fa3"), TimedPass::kForward)
                                                : figure_points("FlashAttention-3", tiles.head_dim);
    const KernelFit fit =
        fit_kernel(need(points, "FlashAttention-3 forward"),
                   start_kernel(tiles, kHopper, 650e12, false), kForwardParameters, nullptr, true);
    keep(fmt::format("fa3 forward {}", tiles.head_dim), points, fit, calibration);
    fa3.forward.push_back(fit.kernel);
    fa3.forward.back().splits_keys = true;
  }
  const std::vector<KernelPoint> points = of_pass(curve_points("fa3"), TimedPass::kBackward);
  const KernelFit fit = fit_kernel(need(points, "FlashAttention-3 backward"),
                                   start_kernel(kFa3Backward[0], kHopper, 600e12, true),
                                   kBackwardParameters, &fa3.forward[1], true);
  keep("fa3 backward 128", points, fit, calibration);
  fa3.backward = {backward_like(fit.kernel, fa3.forward[1], fa3.forward[0]), fit.kernel,
                  backward_like(fit.kernel, fa3.forward[1], fa3.forward[2])};
  hopper_.default_family = "fa3";
  hopper_.provenance["kernels fa2"] =
      "fitted: flash-attention-kernels (H100, FlashAttention-2, head dims 64, 128, 256) and "
      "magiattention-kernel-h100 (fa2); backward of head dim 256 derived from 128";
  hopper_.provenance["kernels fa3"] =
      "fitted: magiattention-kernel-h100 (fa3, head dim 128) and flash-attention-kernels "
      "(FlashAttention-3, head dims 64 and 256); backward of 64 and 256 derived from 128";
}

void KernelFamilies::fit_cudnn(const std::string& folder) {
  const CsvTable table = read_table(folder, "cudnn-sdpa-h200");
  const std::vector<KernelPoint> points =
      kernel_points(table, {"H200", "cuDNN 9.19.1 SDPA", "bfloat16", 128});
  const std::vector<KernelPoint> forward_points = of_pass(points, TimedPass::kForward);
  const std::vector<KernelPoint> backward_points = of_pass(points, TimedPass::kBackward);
  const KernelFit forward = fit_kernel(need(forward_points, "cuDNN forward"),
                                       start_kernel(kCudnn[0], kHopper, 690e12, false),
                                       kForwardParameters, nullptr, true);
  const KernelFit backward = fit_kernel(need(backward_points, "cuDNN backward"),
                                        start_kernel(kCudnn[0], kHopper, 600e12, true),
                                        kBackwardParameters, nullptr, true);
  keep("cudnn forward 128", forward_points, forward, hopper_cudnn_.calibration);
  keep("cudnn backward 128", backward_points, backward, hopper_cudnn_.calibration);
  hopper_cudnn_.families["cudnn"] = {{forward.kernel}, {backward.kernel}};
  hopper_cudnn_.families["cudnn"].forward.front().splits_keys = true;
  hopper_cudnn_.provenance["kernels cudnn"] = "fitted: cudnn-sdpa-h200 (bf16, 64:8 heads of 128)";
}

void KernelFamilies::fit_ampere(const std::string& folder) {
  const CsvTable figures = read_table(folder, "flash-attention-kernels");
  const KernelFamily& hopper = hopper_.families.at("fa2");
  KernelFamily family = moved(hopper, kHopper, kAmpere, 1);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<KernelPoint> points = need(
        kernel_points(figures,
                      {"A100 80GB SXM4", "FlashAttention-2", "fp16", family.forward[i].head_dim}),
        "FlashAttention-2 on A100");
    const double factor = fit_scale(points, family.forward[i], family.backward[i]);
    family.forward[i] = scaled(family.forward[i], factor);
    family.backward[i] = scaled(family.backward[i], factor);
    KernelFit fit;
    fit.kernel = family.forward[i];
    std::vector<double> errors;
    for (const KernelPoint& point : points) {
      fit.fitted_s.push_back(seconds_of(point, family.forward[i], family.backward[i]));
      errors.push_back(std::abs(fit.fitted_s.back() / point.seconds - 1));
    }
    fit.quality.fitted_samples = static_cast<int64_t>(points.size());
    fit.quality.fitted_median = median(errors);
    fit.quality.fitted_worst = *std::max_element(errors.begin(), errors.end());
    keep(fmt::format("fa2 both passes {}", family.forward[i].head_dim), points, fit,
         ampere_.calibration);
    if (i == 1) {
      family.forward[2] = scaled(family.forward[2], factor);
      family.backward[2] = scaled(family.backward[2], factor);
    }
  }
  ampere_.families["fa2"] = family;
  ampere_.default_family = "fa2";
  ampere_.provenance["kernels fa2"] =
      "the kernels fitted on H100, on 108 SMs, with one factor per head dim fitted to "
      "flash-attention-kernels (A100, forward + backward, head dims 64 and 128); head dims below "
      "64 by the line through 64 and 128, 256 with the factor of 128";
}

KernelKnowledge KernelFamilies::of(const GpuSpec& gpu) const {
  KernelKnowledge known;
  const bool is_hopper = gpu.multiprocessors == kHopper;
  const GpuSpec& reference = gpu_spec(is_hopper ? "h100-sxm" : "a100-sxm");
  known = is_hopper ? hopper_ : ampere_;
  if (gpu.name == "h200-sxm") {
    known.families["cudnn"] = hopper_cudnn_.families.at("cudnn");
    known.provenance["kernels cudnn"] = hopper_cudnn_.provenance.at("kernels cudnn");
    known.default_family = "cudnn";
    const Calibration& cudnn = hopper_cudnn_.calibration;
    known.calibration.samples.insert(known.calibration.samples.end(), cudnn.samples.begin(),
                                     cudnn.samples.end());
    known.calibration.fits.insert(cudnn.fits.begin(), cudnn.fits.end());
    known.calibration.parameters.insert(cudnn.parameters.begin(), cudnn.parameters.end());
  }
  const double slower = reference.tensor_flops / gpu.tensor_flops;
  if (gpu.name == "l20") {
    // Matrix products go with the tensor peak, the softmax with SMs times clock.
    KernelFamily& family = known.families["fa2"];
    const double softmax =
        reference.multiprocessors * reference.boost_hz / (gpu.multiprocessors * gpu.boost_hz);
    for (auto* kernels : {&family.forward, &family.backward}) {
      const TileKernel low = (*kernels)[0], high = (*kernels)[1];
      const double whole_low = low.per_pair_s / static_cast<double>(low.slots);
      const double whole_high = high.per_pair_s / static_cast<double>(high.slots);
      const double per_dim = (whole_high - whole_low) / 64, rest = whole_low - 64 * per_dim;
      for (TileKernel& kernel : *kernels) {
        kernel.slots = kernel.slots / kAmpere * gpu.multiprocessors;
        kernel.per_pair_s =
            (per_dim * static_cast<double>(kernel.head_dim) * slower + rest * softmax) *
            static_cast<double>(kernel.slots);
        kernel = scaled(kernel, 1);
      }
    }
    known.calibration = {};
    known.provenance["kernels fa2"] =
        "derived: A100's, matrix products by the ratio of tensor peaks, softmax by the ratio of "
        "SMs times clock; no published curve";
  } else if (slower != 1) {
    for (auto& [name, family] : known.families) family = moved(family, kHopper, kHopper, slower);
    for (auto& [what, text] : known.provenance) {
      text += fmt::format("; times {:.3g} for the lower peak under its power limit", slower);
    }
  }
  for (auto& [name, family] : known.families) set_memory_rate(family, gpu.memory_bytes_per_s);
  return known;
}

}  // namespace ring
