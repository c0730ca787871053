#include "kernels/cuda/gpu_executor.h"

#include "core/program_check.h"
#include "kernels/cuda/device_limits.h"
#include "kernels/cuda/gpu_executor_impl.h"
#include "kernels/cuda/shard_data.h"
#include "kernels/forward_part.h"

namespace ring::cuda {
GpuExecutor::Impl::Impl(const RingProgram& program_in, const DataSource& data,
                        DeviceRuntime& runtime_in, GpuOptions options_in)
    : program(program_in), runtime(runtime_in), options(std::move(options_in)) {
  require_sound(program);
  require_for_devices(program, options);
  std::vector<int> devices = options.devices;
  for (int rank = static_cast<int>(devices.size()); rank < program.ranks(); ++rank)
    devices.push_back(rank % runtime.device_count());
  plan = plan_device(program, options.carrier);
  tensors.resize(static_cast<size_t>(program.ranks()));
  calls.resize(tensors.size());
  stamps.resize(tensors.size());
  create_streams(devices);
  for (int rank = 0; rank < program.ranks(); ++rank)
    create_rank(rank, devices[static_cast<size_t>(rank)], data);
  if (program.problem.pass == Pass::kBackward && program.has_attention) take_forward(data);
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::kCopy) stamps_of(command.send) = stamps_of(command.op);
  }
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.name = program.name;
  timeline.ranks = program.ranks();
  timeline.lanes = program.lanes;
  for (const Command& command : plan.commands) {
    if (command.kind != CommandKind::kCompute || !is_local(command.op.rank)) continue;
    for (const KernelCall& call : calls_of(command.op))
      runtime.prepare(streams[static_cast<size_t>(command.stream)], call);
  }
  if (!options.is_captured) return;
  std::vector<int> used;
  for (int stream : streams) {
    if (stream >= 0) used.push_back(stream);
  }
  captured = runtime.capture(used, [this] { enqueue(); });
}

void GpuExecutor::Impl::create_rank(int rank, int device, const DataSource& data) {
  const std::vector<Op>& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
  stamps[static_cast<size_t>(rank)].resize(ops.size());
  if (device < 0) return;
  if (program.has_attention) {
    runtime.require_attend(device, program.problem.dtype,
                           static_cast<int>(program.problem.head_dim),
                           static_cast<int>(program.problem.head_dim_v));
  }
  if (program.has_attention && has_backward(program.problem.pass)) {
    runtime.require_backward(device, program.problem.dtype,
                             static_cast<int>(program.problem.head_dim),
                             static_cast<int>(program.problem.head_dim_v));
  }
  tensors[static_cast<size_t>(rank)] =
      std::make_unique<RankTensors>(program, rank, data, runtime, device);
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpId id{rank, static_cast<int64_t>(i)};
    stamps_of(id) = {runtime.create_stamp(device), runtime.create_stamp(device)};
    calls[static_cast<size_t>(rank)].push_back(local(rank).calls(ops[i]));
    if (ops[i].kind == OpKind::kSend && ops[i].protocol == Protocol::kEager)
      staged[id] = local(rank).stage(ops[i]);
  }
}

/// Output and lse of a program without a forward pass come from one that has nothing else.
void GpuExecutor::Impl::take_forward(const DataSource& data) {
  const RingProgram forward_program = forward_part_of(program);
  GpuOptions forward_options = options;
  forward_options.skipped_wait = std::nullopt;
  forward_options.is_captured = false;
  GpuExecutor forward(forward_program, data, runtime, forward_options);
  forward.run();
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!is_local(rank)) continue;
    for_each_forward_output(program, rank, [&](const TokenRanges& tokens, int32_t buffer) {
      take_output(forward, rank, buffer, tokens);
    });
  }
}

void GpuExecutor::Impl::take_output(const GpuExecutor& forward, int rank, int32_t buffer,
                                    const TokenRanges& tokens) {
  const Problem& problem = program.problem;
  std::vector<float> out(static_cast<size_t>(problem.heads * problem.head_dim_v));
  std::vector<float> lse(static_cast<size_t>(problem.heads));
  std::vector<std::byte> stored(out.size() * static_cast<size_t>(size_bytes(problem.dtype)));
  int64_t row = 0;
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i, ++row) {
      for (int64_t batch = 0; batch < problem.batch; ++batch) {
        forward.read_output(batch, range.position(i), out, lse);
        store_elements(problem.dtype, out, stored.data());
        local(rank).write_output(buffer, row, token_count(tokens), batch, stored, lse);
      }
    }
  }
}

void GpuExecutor::Impl::create_streams(const std::vector<int>& devices) {
  for (int i = 0; i < plan.streams; ++i) {
    const int device = devices[static_cast<size_t>(rank_of_stream(i))];
    // Transfers go first where a kernel would otherwise hold all multiprocessors.
    const bool is_urgent = i % (program.lanes + 1) != kComputeLane;
    streams.push_back(device < 0 ? -1 : runtime.create_stream(device, is_urgent));
  }
  std::vector<int> device_of_event(static_cast<size_t>(plan.events), -1);
  for (const Command& command : plan.commands) {
    if (command.kind != CommandKind::kRecord) continue;
    device_of_event[static_cast<size_t>(command.event)] =
        devices[static_cast<size_t>(rank_of_stream(command.stream))];
  }
  for (const int device : device_of_event)
    events.push_back(device < 0 ? -1 : runtime.create_event(device));
}

GpuExecutor::GpuExecutor(const RingProgram& program, const DataSource& data, DeviceRuntime& runtime,
                         GpuOptions options)
    : impl_(std::make_unique<Impl>(program, data, runtime, std::move(options))) {}

GpuExecutor::~GpuExecutor() = default;

const Timeline& GpuExecutor::run() {
  Impl& impl = *impl_;
  impl.runtime.begin_clock();
  if (impl.captured != kNotCaptured) {
    impl.runtime.replay(impl.captured);
  } else {
    impl.enqueue();
  }
  impl.runtime.synchronize();
  impl.collect();
  return impl.timeline;
}

Bytes GpuExecutor::storage_bytes(int rank) const {
  return impl_->is_local(rank) ? impl_->local(rank).bytes() : 0;
}

double GpuExecutor::clock_uncertainty_s() const { return impl_->runtime.clock_uncertainty_s(); }
bool GpuExecutor::is_captured() const { return impl_->captured != kNotCaptured; }
const DevicePlan& GpuExecutor::plan() const { return impl_->plan; }
OpStamps GpuExecutor::stamps(OpId op) const { return impl_->stamps_of(op); }

}  // namespace ring::cuda
