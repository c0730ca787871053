// Random machines, timelines and run files for the round-trip properties of the formats.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "core/formats/machine_json.h"
#include "core/formats/run_json.h"

namespace ring {

class RandomFiles {
 public:
  explicit RandomFiles(uint64_t seed) : engine_(seed) {}

  int64_t whole(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  bool coin() { return whole(0, 1) == 1; }
  /// A positive number of any magnitude, with all its digits.
  double amount() {
    return std::ldexp(std::uniform_real_distribution<double>(1, 2)(engine_),
                      static_cast<int>(whole(-60, 60)));
  }
  std::string text() {
    static const std::string kLetters = "abz 09/~\"\\\n\t.µ";
    std::string out;
    for (int64_t i = whole(0, 8); i > 0; --i) {
      out += kLetters.substr(static_cast<size_t>(whole(0, 11)), 1);
    }
    return out + (coin() ? "µ" : "");
  }

  Topology topology() {
    Topology topology;
    const auto nodes = static_cast<int>(whole(1, 6));
    for (int i = 0; i < nodes; ++i) {
      const auto kind = static_cast<NodeKind>(whole(0, 5));
      topology.add_node({text(), kind, static_cast<int>(whole(0, 3))});
    }
    for (int64_t i = whole(0, 9); i > 0; --i) {
      const auto a = static_cast<int>(whole(0, nodes - 1)),
                 b = static_cast<int>(whole(0, nodes - 1));
      if (a != b) topology.connect(a, b, amount(), whole(0, 1'000'000), text(), coin());
    }
    return topology;
  }

  MachineFile machine() {
    MachineFile file;
    Machine& machine = file.machine;
    machine.name = text();
    machine.is_calibrated = coin();
    machine.topology = topology();
    const auto nodes = static_cast<int64_t>(machine.topology.nodes().size());
    for (int64_t i = whole(0, 5); i > 0; --i) {
      machine.processors.push_back(static_cast<int>(whole(0, nodes - 1)));
    }
    machine.transfer = coin() ? TransferKind::kLinks : TransferKind::kReceiverCopy;
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      if (coin()) machine.attend[dtype] = {amount(), amount(), amount(), 0, amount(), amount()};
      if (coin()) machine.backward[dtype] = {amount(), 0, amount(), amount()};
      if (!machine.attend.contains(dtype)) continue;
      machine.attend[dtype].tiles = tiles();
      machine.attend[dtype].per_merge_row_dim_s = amount();
    }
    for (int64_t i = whole(0, 2); i > 0; --i) machine.kernels[text()] = {tiles(), tiles()};
    machine.copy = {amount(), amount()};
    machine.merge_bytes_per_s = amount();
    machine.memory_bytes_per_s = amount();
    machine.wakeup_s = amount();
    machine.attend_contention = amount();
    machine.attend_slowdown_by_transfer = amount();
    machine.transfer_slowdown_by_attend = amount();
    machine.memory_capacity_bytes = whole(0, INT64_MAX);
    machine.noise = {amount(), amount()};
    for (int64_t i = whole(0, 3); i > 0; --i) {
      const double low = amount();
      machine.trusted[text()] = {low, low + amount()};
      machine.context[text()] = text();
      machine.provenance[text()] = text();
    }
    for (int64_t i = whole(0, 5); i > 0; --i) file.calibration.samples.push_back(sample());
    file.calibration.parameters[text()] = {amount(), -amount(), amount()};
    file.calibration.fits[text()] = {whole(0, 99), 3, amount(), amount(), amount(), amount()};
    return file;
  }

  std::vector<TileKernel> tiles() {
    std::vector<TileKernel> tiles;
    int64_t head_dim = 0;
    for (int64_t i = whole(0, 3); i > 0; --i) {
      head_dim += whole(1, 128);
      TileKernel kernel;
      kernel.head_dim = head_dim;
      kernel.tile_rows = whole(1, 256);
      kernel.step_tokens = whole(1, 256);
      kernel.slots = whole(1, 999);
      kernel.slots_per_unit = whole(1, 2);
      kernel.alone_speed = amount();
      kernel.is_balanced = coin();
      kernel.splits_keys = coin();
      kernel.per_pair_s = amount();
      kernel.launch_s = amount();
      tiles.push_back(kernel);
    }
    return tiles;
  }

  CalibrationSample sample() {
    CalibrationSample sample{text(), {{text(), -amount()}}, {{text(), text()}}, {}, amount(),
                             coin()};
    for (int64_t i = whole(0, 5); i > 0; --i) sample.seconds.push_back(amount());
    return sample;
  }

  Timeline timeline(TimelineOrigin origin) {
    Timeline timeline;
    timeline.origin = origin;
    timeline.name = text();
    timeline.ranks = static_cast<int>(whole(1, 4));
    timeline.lanes = static_cast<int>(whole(1, 4));
    timeline.is_complete = coin();
    const int64_t scale = coin() ? 1'000'000'000 : INT64_MAX / 64;
    for (int64_t i = whole(0, 20); i > 0; --i) {
      Slice slice;
      slice.op = {static_cast<int32_t>(whole(0, timeline.ranks - 1)), i};
      slice.kind = static_cast<OpKind>(whole(0, kOpKinds - 1));
      slice.lane = static_cast<int32_t>(whole(0, timeline.lanes - 1));
      slice.step = static_cast<int32_t>(whole(0, 9));
      slice.peer = static_cast<int32_t>(whole(-1, 3));
      slice.kv_shard = static_cast<int32_t>(whole(-1, 3));
      slice.bytes = whole(0, INT64_MAX);
      slice.flops = whole(0, INT64_MAX);
      slice.posted_ps = whole(0, scale);
      slice.start_ps = slice.posted_ps + (coin() ? whole(0, scale) : 0);
      slice.end_ps = slice.start_ps + whole(0, scale);
      timeline.slices.push_back(slice);
    }
    sort_slices(timeline);
    return timeline;
  }

  Counter counter() {
    Counter counter{text(), text(), static_cast<int>(whole(0, 9)), {}};
    for (int64_t i = whole(0, 5); i > 0; --i)
      counter.points.push_back({whole(-INT64_MAX, INT64_MAX), -amount()});
    return counter;
  }

  /// The metrics need not be true, but two of them are checked by the reader.
  Metrics metrics(const Timeline& timeline) {
    Metrics metrics;
    metrics.makespan_ps = timeline.makespan_ps();
    metrics.is_complete = timeline.is_complete;
    metrics.ranks.push_back({whole(0, 9), whole(0, INT64_MAX), 0, 1, 2, amount()});
    metrics.communication_ratio = amount();
    metrics.overlap = amount();
    metrics.flops = whole(0, INT64_MAX);
    metrics.bytes_sent = whole(0, INT64_MAX);
    return metrics;
  }

  RunFile run() {
    RunFile run;
    run.name = text();
    run.machine = text();
    run.seed = engine_();
    run.context[text()] = text();
    if (coin()) {
      ProgramIdentity identity;
      identity.problem.kv_heads = whole(1, 4);
      identity.problem.heads = identity.problem.kv_heads * whole(1, 4);
      identity.problem.head_dim = whole(1, 256);
      identity.problem.head_dim_v = whole(1, 256);
      const char* masks[] = {"full", "causal", "window:7", "chunked:5", "prefix:3"};
      identity.problem.mask = Mask::parse(masks[whole(0, 4)], whole(1, 1 << 20));
      identity.problem.dtype = coin() ? DType::kBF16 : DType::kF16;
      identity.problem.scale = coin() ? amount() : 0;
      identity.tuning.block_tokens = whole(1, INT64_MAX);
      identity.tuning.partition = "striped:3";
      identity.tuning.backward = static_cast<BackwardMoves>(whole(0, 2));
      identity.tuning.accumulation_steps = static_cast<int>(whole(1, 9));
      identity.tuning.optimizer_gap_ps = whole(0, INT64_MAX);
      run.identity = identity;
    } else {
      run.program_text = text();
    }
    if (coin()) run.measured = timeline(TimelineOrigin::kMeasured);
    if (coin()) run.predicted = timeline(TimelineOrigin::kPredicted);
    if (run.measured && coin()) run.measured_metrics = metrics(*run.measured);
    if (run.predicted && coin()) run.predicted_metrics = metrics(*run.predicted);
    run.measured_clock_uncertainty_ps = coin() ? whole(0, INT64_MAX) : 0;
    for (int64_t i = whole(0, 2); i > 0; --i) run.measured_counters.push_back(counter());
    for (int64_t i = whole(0, 4); i > 0; --i) run.measured_steps_ps.push_back(whole(0, INT64_MAX));
    if (coin())
      run.predicted_interval = PredictedInterval{3, whole(3, INT64_MAX), amount(), coin()};
    return run;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace ring
