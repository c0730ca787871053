#include "kernels/cuda/gpu_probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/program_text.h"
#include "core/strategy.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/gpu_executor.h"
#include "kernels/machine_fit.h"
#include "kernels/recorder.h"

namespace ring::cuda {
namespace {

constexpr int kRunsPerRound = 3;
constexpr uint64_t kDataSeed = 1;

struct AttendShape {
  Tokens tokens, block;
  int64_t heads, kv_heads, head_dim;
  const char* mask;
  bool is_held_out;
};

// Blocks from one wave of small tiles to many of large ones, full and in part.
constexpr AttendShape kShapes[] = {
    {512, 128, 8, 8, 128, "full", false},     {1024, 512, 8, 8, 128, "causal", false},
    {2048, 1024, 16, 4, 128, "full", false},  {4096, 512, 16, 16, 128, "causal", false},
    {4096, 4096, 16, 4, 128, "full", false},  {8192, 2048, 32, 8, 128, "causal", false},
    {16384, 4096, 32, 8, 128, "full", false}, {16384, 2048, 16, 16, 128, "causal", false},
    {512, 256, 8, 8, 64, "full", false},      {2048, 512, 16, 16, 64, "causal", false},
    {4096, 2048, 32, 8, 64, "full", false},   {8192, 1024, 32, 32, 64, "causal", false},
    {16384, 8192, 32, 8, 64, "full", false},  {2048, 256, 32, 32, 128, "full", false},
    {3072, 768, 24, 8, 128, "causal", true},  {6144, 1536, 32, 8, 128, "full", true},
    {12288, 3072, 16, 4, 64, "causal", true}, {8192, 4096, 8, 8, 128, "causal", true},
};

// The backward pass takes 2.5 times the flops: fewer shapes.
constexpr AttendShape kBackwardShapes[] = {
    {512, 128, 8, 8, 128, "full", false},     {1024, 512, 8, 8, 128, "causal", false},
    {2048, 1024, 16, 4, 128, "full", false},  {4096, 1024, 16, 16, 128, "causal", false},
    {8192, 2048, 16, 16, 128, "full", false}, {1024, 256, 8, 8, 64, "full", false},
    {512, 256, 8, 8, 64, "causal", false},    {1024, 128, 16, 4, 128, "causal", false},
    {2048, 512, 16, 16, 64, "causal", false}, {4096, 2048, 32, 8, 64, "causal", false},
    {8192, 4096, 16, 16, 64, "full", false},  {2048, 256, 32, 32, 128, "full", false},
    {3072, 768, 24, 8, 128, "causal", true},  {6144, 3072, 16, 4, 64, "full", true},
};

Problem problem_of(const AttendShape& shape, DType dtype) {
  Problem problem;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.head_dim = problem.head_dim_v = shape.head_dim;
  problem.dtype = dtype;
  problem.mask = Mask::parse(shape.mask, shape.tokens);
  return problem;
}

Tuning single_rank(Tokens block) {
  Tuning tuning;
  tuning.ranks = 1;
  tuning.partition = "contiguous";
  tuning.block_tokens = block;
  return tuning;
}

GpuProbe attend_probe(const AttendShape& shape, DType dtype) {
  GpuProbe probe;
  probe.probe.is_held_out = shape.is_held_out;
  probe.probe.label = fmt::format("attention, {} tokens in blocks of {}, head dim {}, {}",
                                  shape.tokens, shape.block, shape.head_dim, name(dtype));
  probe.probe.program = plan(problem_of(shape, dtype), single_rank(shape.block));
  probe.devices = {0};
  return probe;
}

/// Backward; on two ranks gradients travel and are added up.
GpuProbe backward_probe(const AttendShape& shape, DType dtype, std::vector<int> devices) {
  Problem problem = problem_of(shape, dtype);
  problem.pass = Pass::kBackward;
  Tuning tuning = single_rank(shape.block);
  tuning.ranks = static_cast<int>(devices.size());
  tuning.backward = BackwardMoves::kKeys;
  GpuProbe probe;
  if (devices.size() > 1) probe.probe.kind = ProbeKind::kGradients;
  probe.probe.is_held_out = shape.is_held_out;
  probe.probe.label = fmt::format("backward, {} tokens in blocks of {}, head dim {}, {}",
                                  shape.tokens, shape.block, shape.head_dim, name(dtype));
  probe.probe.program = plan(problem, tuning);
  probe.devices = std::move(devices);
  return probe;
}

GpuProbe merge_probe(Tokens tokens) {
  const AttendShape shape{tokens, tokens / 4, 16, 16, 128, "full", false};
  Tuning tuning = single_rank(shape.block);
  tuning.is_deterministic = true;
  GpuProbe probe;
  probe.probe.label = fmt::format("merges, {} tokens", tokens);
  probe.probe.program = plan(problem_of(shape, DType::kBF16), tuning);
  probe.devices = {0};
  return probe;
}

/// `count` messages from rank 0 to rank 1, with rank 1 attending meanwhile for `busy_us` a message.
GpuProbe transfer_probe(Bytes bytes, int count, int to_device, const char* transfer) {
  std::string text = "ranks 2\nlanes 1\n";
  for (int i = 0; i < count; ++i) {
    text += fmt::format("r0 L0 send to=1 msg={} bytes={}\n", i, bytes);
    text += fmt::format("r1 L0 receive from=0 msg={} bytes={} buffer={}\n", i, bytes, i % 4);
  }
  GpuProbe probe;
  probe.probe.kind = ProbeKind::kTransfer;
  probe.probe.transfer = transfer;
  probe.probe.label = fmt::format("messages of {}{}", format_bytes(bytes),
                                  to_device == 0 ? "" : " between devices");
  probe.probe.program = parse_program(text);
  probe.devices = {0, to_device};
  return probe;
}

/// A ring of two whose attention hides the messages: what both cost while the other is under way.
GpuProbe ring_probe(Tokens tokens, int devices) {
  const AttendShape shape{tokens, tokens / 8, 16, 16, 128, "full", false};
  Tuning tuning;
  tuning.ranks = 2;
  tuning.partition = "contiguous";
  tuning.block_tokens = shape.block;
  tuning.blocks_per_message = 1;
  GpuProbe probe;
  probe.probe.kind = ProbeKind::kContention;
  probe.probe.transfer = "transfer-beside-attention";
  probe.probe.label = fmt::format("a ring of two, {} tokens", tokens);
  probe.probe.program = plan(problem_of(shape, DType::kBF16), tuning);
  probe.devices = {0, devices > 1 ? 1 : 0};
  return probe;
}

struct RunningProbe {
  explicit RunningProbe(GpuProbe given) : gpu(std::move(given)), collector(gpu.probe) {}

  void run(DeviceRuntime& runtime) {
    if (!executor) {
      const SeededData data(kDataSeed);
      executor = std::make_unique<GpuExecutor>(
          gpu.probe.program, data, runtime,
          GpuOptions{.carrier = Carrier::kCopies, .devices = gpu.devices});
    }
    executor->run();  // The first finds clocks low and caches full of something else.
    for (int i = 0; i < kRunsPerRound; ++i) collector.add_run(executor->run());
  }

  GpuProbe gpu;
  ProbeCollector collector;
  std::unique_ptr<GpuExecutor> executor;
};

GpuMachineFacts machine_facts(const DeviceRuntime& runtime) {
  GpuMachineFacts facts;
  facts.devices = runtime.device_count();
  facts.name = runtime.facts(0).name;
  facts.memory_bytes = runtime.facts(0).memory_bytes;
  facts.context = runtime.versions();
  facts.context["multiprocessors"] = std::to_string(runtime.facts(0).multiprocessors);
  return facts;
}

}  // namespace

std::vector<GpuProbe> gpu_probe_programs(int devices, Tokens largest_tokens) {
  std::vector<GpuProbe> probes;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const AttendShape& shape : kShapes) {
      if (shape.tokens <= largest_tokens) probes.push_back(attend_probe(shape, dtype));
    }
    for (const AttendShape& shape : kBackwardShapes) {
      if (shape.tokens <= largest_tokens) probes.push_back(backward_probe(shape, dtype, {0}));
    }
  }
  for (const Tokens tokens : {Tokens{512}, Tokens{2048}, Tokens{8192}}) {
    if (tokens <= largest_tokens) probes.push_back(merge_probe(tokens));
  }
  for (const AttendShape& shape : {kBackwardShapes[1], kBackwardShapes[3]}) {
    if (shape.tokens <= largest_tokens)
      probes.push_back(backward_probe(shape, DType::kBF16, {0, devices > 1 ? 1 : 0}));
  }
  const auto sizes = {Bytes{4} << 10, Bytes{64} << 10, Bytes{512} << 10,
                      Bytes{4} << 20, Bytes{32} << 20, Bytes{128} << 20};
  for (const Bytes bytes : sizes) {
    if (bytes > largest_tokens * 8192) continue;
    probes.push_back(transfer_probe(bytes, 8, 0, "transfer"));
    if (devices > 1) probes.push_back(transfer_probe(bytes, 8, 1, "transfer-peer"));
  }
  for (const Tokens tokens : {Tokens{2048}, Tokens{16384}}) {
    if (tokens <= largest_tokens) probes.push_back(ring_probe(tokens, devices));
  }
  return probes;
}

CalibrationResult calibrate_gpu(DeviceRuntime& runtime, const CalibrationOptions& options,
                                Tokens largest_tokens) {
  const int64_t start_ns = now_ns();
  const auto elapsed_s = [start_ns] { return seconds_since(start_ns); };
  std::vector<std::unique_ptr<RunningProbe>> probes;
  for (GpuProbe& probe : gpu_probe_programs(runtime.device_count(), largest_tokens))
    probes.push_back(std::make_unique<RunningProbe>(std::move(probe)));
  DeviceMonitor monitor;
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
  fit_gpu_machine(collectors, machine_facts(runtime), result.machine, result.calibration);
  result.machine.context.merge(monitor_summary(monitor.stop()));
  result.machine.is_calibrated = result.is_complete;
  result.elapsed_s = elapsed_s();
  return result;
}

}  // namespace ring::cuda
