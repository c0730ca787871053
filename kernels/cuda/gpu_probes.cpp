#include "kernels/cuda/gpu_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu_executor.h"
#include "kernels/cuda/gpu_session.h"
#include "kernels/machine_fit.h"
#include "kernels/recorder.h"

namespace ring::cuda {
namespace {

constexpr int kRunsPerRound = 3;
constexpr uint64_t kDataSeed = 1;

struct RunningProbe {
  explicit RunningProbe(GpuProbe given) : gpu(std::move(given)), collector(gpu.probe) {}

  void run(DeviceRuntime& runtime) {
    if (!executor) {
      const SeededData data(kDataSeed);
      executor =
          std::make_unique<GpuExecutor>(gpu.probe.program, data, runtime,
                                        GpuOptions{.carrier = gpu.carrier, .devices = gpu.devices});
    }
    executor->run();  // The first finds clocks low and caches full of something else.
    for (int i = 0; i < kRunsPerRound; ++i) collector.add_run(executor->run());
  }

  GpuProbe gpu;
  ProbeCollector collector;
  std::unique_ptr<GpuExecutor> executor;
};

GpuMachineFacts machine_facts(const DeviceRuntime& runtime, const LinkClasses& links,
                              Carrier carrier) {
  GpuMachineFacts facts;
  facts.devices = runtime.device_count();
  facts.name = runtime.facts(0).name;
  facts.memory_bytes = runtime.facts(0).memory_bytes;
  facts.context = runtime.versions();
  facts.links = links;
  facts.context["carrier"] = name(carrier);
  for (const int dim : {64, 128})
    facts.context[fmt::format("gpu attention, head dim {}", dim)] =
        runtime.attend_kernel(0, DType::kBF16, dim, dim);
  facts.context["multiprocessors"] = std::to_string(runtime.facts(0).multiprocessors);
  return facts;
}

/// Power limit and highest clock, which lock what was measured to this set-up.
std::map<std::string, std::string> limits_text(const std::vector<DeviceLimits>& limits) {
  std::map<std::string, std::string> facts;
  if (limits.empty()) return facts;
  const auto [low, high] = std::minmax_element(
      limits.begin(), limits.end(),
      [](const auto& a, const auto& b) { return a.power_limit_w < b.power_limit_w; });
  if (low->power_limit_w >= 0) {
    facts["gpu power limit"] = low->power_limit_w == high->power_limit_w
                                   ? fmt::format("{:.0f} W", low->power_limit_w)
                                   : fmt::format("{:.0f} to {:.0f} W, not all the same",
                                                 low->power_limit_w, high->power_limit_w);
  }
  if (limits.front().most_sm_clock_mhz >= 0)
    facts["gpu highest clock"] = fmt::format("{:.0f} MHz", limits.front().most_sm_clock_mhz);
  return facts;
}

}  // namespace

LinkClasses link_classes(const DeviceRuntime& runtime) {
  LinkClasses classes;
  for (int from = 0; from < runtime.device_count(); ++from) {
    for (int to = from + 1; to < runtime.device_count(); ++to)
      classes[runtime.link_class(from, to)].emplace_back(from, to);
  }
  return classes;
}

CalibrationResult calibrate_gpu(DeviceRuntime& runtime, const CalibrationOptions& options,
                                const GpuProbeOptions& gpu) {
  const int64_t start_ns = now_ns();
  const auto elapsed_s = [start_ns] { return seconds_since(start_ns); };
  std::vector<std::unique_ptr<RunningProbe>> probes;
  const LinkClasses links = link_classes(runtime);
  for (GpuProbe& probe : gpu_probe_programs(links, gpu))
    probes.push_back(std::make_unique<RunningProbe>(std::move(probe)));
  DeviceMonitor monitor(bus_ids(runtime));
  CalibrationResult result;
  const auto is_interrupted = [&] {
    return options.interrupt != nullptr && options.interrupt->load();
  };
  double round_s = 0;
  for (int round = 0; !is_interrupted(); ++round) {
    const double before_s = elapsed_s();
    if (round >= options.least_rounds && before_s + round_s > options.budget_s) break;
    for (size_t i = 0; i < probes.size() && !is_interrupted(); ++i) {
      if (options.on_progress) {
        const double of_round = static_cast<double>(i) / static_cast<double>(probes.size());
        options.on_progress({probes[i]->gpu.probe.label,
                             std::min((round + of_round) / options.least_rounds, 1.0),
                             elapsed_s()});
      }
      probes[i]->run(runtime);
    }
    round_s = elapsed_s() - before_s;
  }
  result.is_complete = !is_interrupted();
  std::vector<const ProbeCollector*> collectors;
  for (const auto& probe : probes) collectors.push_back(&probe->collector);
  fit_gpu_machine(collectors, machine_facts(runtime, links, gpu.carrier), result.machine,
                  result.calibration);
  result.machine.context.merge(limits_text(monitor.limits()));
  result.machine.context.merge(monitor_summary(monitor.stop()));
  result.machine.is_calibrated = result.is_complete;
  result.elapsed_s = elapsed_s();
  return result;
}

}  // namespace ring::cuda
