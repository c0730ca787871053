// A calibration of devices that are only thought of: every probe takes what it is said to take.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/gpu_probes.h"
#include "kernels/machine_fit.h"

namespace ring::test {

/// Seconds of an op of a probe.
using OpSeconds = std::function<double(const cuda::GpuProbe&, const Op&)>;

/// Ops one after another, each from the end of the one before it, `gap_s` later.
inline Timeline timeline_of(const cuda::GpuProbe& probe, double gap_s, const OpSeconds& seconds) {
  Timeline timeline;
  const RingProgram& program = probe.probe.program;
  timeline.ranks = program.ranks();
  timeline.lanes = program.lanes;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    Picoseconds now_ps = 0;
    const std::vector<Op>& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      Slice slice = slice_of(program, {rank, static_cast<int64_t>(i)});
      slice.posted_ps = slice.start_ps = now_ps + picoseconds_from_seconds(gap_s);
      now_ps = slice.end_ps = slice.start_ps + picoseconds_from_seconds(seconds(probe, ops[i]));
      timeline.slices.push_back(slice);
    }
  }
  sort_slices(timeline);
  return timeline;
}

/// The machine that is fitted to devices with these links.
inline Machine fitted_machine(int devices, const cuda::LinkClasses& links,
                              const cuda::GpuProbeOptions& options, double gap_s,
                              const OpSeconds& seconds) {
  const std::vector<cuda::GpuProbe> probes = cuda::gpu_probe_programs(links, options);
  std::vector<std::unique_ptr<ProbeCollector>> collectors;
  std::vector<const ProbeCollector*> given;
  for (const cuda::GpuProbe& probe : probes) {
    collectors.push_back(std::make_unique<ProbeCollector>(probe.probe));
    for (int run = 0; run < 3; ++run)
      collectors.back()->add_run(timeline_of(probe, gap_s, seconds));
    given.push_back(collectors.back().get());
  }
  GpuMachineFacts facts;
  facts.devices = devices;
  facts.name = "thought";
  facts.links = links;
  facts.context["carrier"] = "exchanges";
  Machine machine;
  Calibration calibration;
  fit_gpu_machine(given, facts, machine, calibration);
  return machine;
}

}  // namespace ring::test
