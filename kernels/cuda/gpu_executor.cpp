#include "kernels/cuda/gpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "kernels/cuda/rank_tensors.h"
#include "kernels/cuda/shard_data.h"

namespace ring::cuda {
namespace {

/// What no kernel does, or no process can look up.
void require_ops(const RingProgram& program, bool has_foreign) {
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) {
      if (computes_pairs(op.kind) && op.method == AttendMethod::kNaive)
        throw Error(ErrorKind::kUnavailable, "GPUs do not run " + program.tuning.strategy,
                    "strategies that attend by tiles run");
      if (op.payload == Payload::kState)
        throw Error(ErrorKind::kUnavailable,
                    "GPUs do not run " + program.tuning.strategy + " in deterministic mode yet",
                    "leave out --deterministic, or use a strategy that passes K and V");
      const bool is_elsewhere = op.kind == OpKind::kFinalize && op.buffer != kHomeBuffer;
      if (has_foreign && is_elsewhere && op.payload != Payload::kPartial)
        throw Error(ErrorKind::kUnavailable,
                    "several processes do not run " + program.tuning.strategy,
                    "ranks of one process run it");
    }
  }
}

void require_runnable(const RingProgram& program, const GpuOptions& options) {
  if (!program.has_attention) return;
  const Problem& problem = program.problem;
  if (problem.dtype == DType::kF32)
    throw Error(ErrorKind::kUnavailable, "the kernels of GPUs do not take fp32",
                "choose bf16 or fp16");
  constexpr int64_t kMostHeads = 65536;  // inverse_of is exact below it.
  if (problem.heads * (problem.heads / problem.kv_heads) >= kMostHeads)
    throw Error(ErrorKind::kUnavailable, "too many query heads for the kernels of GPUs");
  if (!(problem.softmax_scale() > 0))
    throw Error(ErrorKind::kUnavailable, "the kernels of GPUs take a positive softmax scale only");
  const bool has_foreign = std::count(options.devices.begin(), options.devices.end(), -1) > 0;
  require_ops(program, has_foreign);
  if (has_foreign && options.carrier == Carrier::kCopies)
    throw_usage("ranks of other processes can only be reached by exchanges");
}

}  // namespace

struct GpuExecutor::Impl {
  Impl(const RingProgram& program, const DataSource& data, DeviceRuntime& runtime,
       GpuOptions options);

  bool is_local(int rank) const { return tensors[static_cast<size_t>(rank)] != nullptr; }
  RankTensors& local(int rank) const { return *tensors[static_cast<size_t>(rank)]; }
  int rank_of_stream(int stream) const { return stream / (program.lanes + 1); }
  void create_rank(int rank, int device, const DataSource& data);
  void create_streams(const std::vector<int>& devices);
  OpStamps& stamps_of(OpId id) {
    return stamps[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)];
  }
  const std::vector<KernelCall>& calls_of(OpId id) const {
    return calls[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)];
  }
  void enqueue();
  void enqueue(const Command& command);
  void compute(const Command& command);
  void copy(int stream, const Pieces& to, const Pieces& from);
  void launch_calls(int stream, OpId op);
  void take_forward(const DataSource& data);
  void take_output(const GpuExecutor& forward, int rank, int32_t buffer, const TokenRanges& tokens);
  void transfer(const Command& command);
  void exchange(const Command& command);
  void collect();
  void fill_posted(size_t first_slice, int rank);
  float read_lse(int64_t batch, int64_t head, int64_t position, const TokenPlace& place) const;
  std::span<const float> gradients(Payload payload, int part, int64_t batch, int64_t position,
                                   std::vector<float>& values) const;

  const RingProgram& program;
  DeviceRuntime& runtime;
  GpuOptions options;
  DevicePlan plan;
  std::vector<std::unique_ptr<RankTensors>> tensors;  ///< By rank; null: of another process.
  std::vector<int> streams, events;                   ///< Of the runtime, by number in the plan.
  std::vector<std::vector<OpStamps>> stamps;          ///< By rank and op.
  std::vector<std::vector<std::vector<KernelCall>>> calls;
  std::map<OpId, Pieces> staged;  ///< By eager send.
  int captured = kNotCaptured;
  Timeline timeline;
  std::vector<float> dq, dk, dv;  ///< Read last.
};

GpuExecutor::Impl::Impl(const RingProgram& program_in, const DataSource& data,
                        DeviceRuntime& runtime_in, GpuOptions options_in)
    : program(program_in), runtime(runtime_in), options(std::move(options_in)) {
  require_sound(program);
  require_runnable(program, options);
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
  Problem problem = program.problem;
  problem.pass = Pass::kForward;
  Tuning tuning = program.tuning;
  tuning.backward = BackwardMoves::kAuto;
  tuning.accumulation_steps = 1;
  tuning.optimizer_gap_ps = 0;
  const RingProgram forward_program = ring::plan(problem, tuning);
  GpuOptions forward_options = options;
  forward_options.skipped_wait = std::nullopt;
  forward_options.is_captured = false;
  GpuExecutor forward(forward_program, data, runtime, forward_options);
  forward.run();
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!is_local(rank)) continue;
    take_output(forward, rank, kHomeBuffer, program.partition.shard(rank));
    const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
    for (size_t i = 0; i < storage.shaped_buffers.size(); ++i) {
      const BufferShape& shape = storage.shaped_buffers[i];
      if (shape.payload != Payload::kOutput || shape.filled_with < 0) continue;
      take_output(forward, rank, storage.buffers + static_cast<int32_t>(i),
                  program.tokens_of(shape.filled_with));
    }
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

void GpuExecutor::Impl::enqueue() {
  int waits = 0;
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::kWait && waits++ == options.skipped_wait) continue;
    enqueue(command);
  }
}

void GpuExecutor::Impl::enqueue(const Command& command) {
  if (command.kind == CommandKind::kExchange) {
    exchange(command);
    return;
  }
  if (!is_local(rank_of_stream(command.stream))) return;
  const int stream = streams[static_cast<size_t>(command.stream)];
  switch (command.kind) {
    case CommandKind::kCompute:
      compute(command);
      break;
    case CommandKind::kCopy:
    case CommandKind::kStage:
    case CommandKind::kDeliver:
      transfer(command);
      break;
    case CommandKind::kRecord:
      runtime.record(stream, events[static_cast<size_t>(command.event)]);
      break;
    case CommandKind::kWait:
      runtime.wait(stream, events[static_cast<size_t>(command.event)]);
      break;
    case CommandKind::kExchange:
      break;
  }
}

void GpuExecutor::Impl::compute(const Command& command) {
  const int stream = streams[static_cast<size_t>(command.stream)];
  const OpStamps& at = stamps_of(command.op);
  runtime.stamp(stream, at.begin);
  launch_calls(stream, command.op);
  runtime.stamp(stream, at.end);
}

void GpuExecutor::Impl::launch_calls(int stream, OpId op) {
  for (const KernelCall& call : calls_of(op)) runtime.launch(stream, call);
}

void GpuExecutor::Impl::copy(int stream, const Pieces& to, const Pieces& from) {
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].bytes > 0) runtime.copy(stream, to[i].data, from[i].data, to[i].bytes);
  }
}

void GpuExecutor::Impl::transfer(const Command& command) {
  const int stream = streams[static_cast<size_t>(command.stream)];
  const Op& receive = program.op(command.op);
  const Op& send = program.op(command.send);
  const bool is_stage = command.kind == CommandKind::kStage;
  const OpStamps& at = stamps_of(is_stage ? command.send : command.op);
  const auto from = command.kind == CommandKind::kDeliver ? staged.at(command.send)
                                                          : local(command.send.rank).pieces(send);
  const auto to = is_stage ? staged.at(command.send) : local(command.op.rank).pieces(receive);
  runtime.stamp(stream, at.begin);
  copy(stream, to, from);
  if (!is_stage) launch_calls(stream, command.op);
  runtime.stamp(stream, at.end);
}

void GpuExecutor::Impl::exchange(const Command& command) {
  std::vector<ExchangePart> parts;
  std::vector<int> part_streams;
  std::vector<std::tuple<int, OpStamps, OpId>> timed;
  for (const ExchangeOp& pair : plan.exchanges[static_cast<size_t>(command.exchange)]) {
    for (const OpId id : {pair.send, pair.receive}) {
      if (!is_local(id.rank)) continue;
      const int stream = streams[static_cast<size_t>(exchange_stream(program, id.rank))];
      const Op& op = program.op(id);
      for (const Piece& piece : local(id.rank).pieces(op)) {
        if (piece.bytes == 0) continue;
        parts.push_back({op.kind == OpKind::kSend, id.rank, op.peer, piece.data, piece.bytes});
        part_streams.push_back(stream);
      }
      timed.emplace_back(stream, stamps_of(id), id);
    }
  }
  for (const auto& [stream, at, id] : timed) runtime.stamp(stream, at.begin);
  if (!parts.empty()) runtime.exchange(parts, part_streams);
  for (const auto& [stream, at, id] : timed) {
    launch_calls(stream, id);  // Of sends there are none.
    runtime.stamp(stream, at.end);
  }
}

/// Transfers are posted when what they wait for on their own rank is done.
void GpuExecutor::Impl::fill_posted(size_t first_slice, int rank) {
  const RankProgram& rank_program = program.rank_programs[static_cast<size_t>(rank)];
  std::vector<std::vector<Picoseconds>> ends(static_cast<size_t>(program.lanes));
  for (size_t i = 0; i < rank_program.ops.size(); ++i)
    ends[static_cast<size_t>(rank_program.ops[i].lane)].push_back(
        timeline.slices[first_slice + i].end_ps);
  const auto end_at = [&](int lane, int64_t position) {
    return ends[static_cast<size_t>(lane)][static_cast<size_t>(position)];
  };
  for (size_t i = 0; i < rank_program.ops.size(); ++i) {
    const Op& op = rank_program.ops[i];
    if (op.kind != OpKind::kSend && op.kind != OpKind::kReceive) continue;
    Picoseconds posted = op.lane_position > 0 ? end_at(op.lane, op.lane_position - 1) : 0;
    for (const LanePoint& point : rank_program.deps_of(op))
      posted = std::max(posted, end_at(point.lane, point.position));
    Slice& slice = timeline.slices[first_slice + i];
    slice.posted_ps = std::min(posted, slice.start_ps);
  }
}

void GpuExecutor::Impl::collect() {
  timeline.slices.clear();
  const auto time_of = [&](int stamp) {
    return std::max<Picoseconds>(0, picoseconds_from_seconds(runtime.stamp_s(stamp)));
  };
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!is_local(rank)) continue;
    const std::vector<Op>& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    const size_t first_slice = timeline.slices.size();
    for (size_t i = 0; i < ops.size(); ++i) {
      Slice slice = slice_of(program, {rank, static_cast<int64_t>(i)});
      const OpStamps& at = stamps_of(slice.op);
      slice.start_ps = slice.posted_ps = time_of(at.begin);
      slice.end_ps = std::max(slice.start_ps, time_of(at.end));
      timeline.slices.push_back(slice);
    }
    fill_posted(first_slice, rank);
  }
  sort_slices(timeline);
}

/// The log-sum-exp is kept where the op that finalizes the row and head puts it: at home, or with
/// the rank that computed it.
float GpuExecutor::Impl::read_lse(int64_t batch, int64_t head, int64_t position,
                                  const TokenPlace& place) const {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (!is_local(rank)) continue;
    for (const Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind != OpKind::kFinalize || op.payload == Payload::kPartial) continue;
      if (head < op.head_begin || head >= op.head_end) continue;
      if (op.buffer == kHomeBuffer && rank != place.rank) continue;
      const int64_t row =
          op.buffer == kHomeBuffer ? place.row : index_of(program.tokens_of(op.q_shard), position);
      if (row < op.q_begin || row >= op.q_end) continue;
      return local(rank).read_lse(op, batch, head, row);
    }
  }
  throw_usage(fmt::format("no op writes the result of token {}", position));
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

void GpuExecutor::read_output(int64_t batch, int64_t position, std::span<float> out,
                              std::span<float> lse) const {
  const Problem& problem = impl_->program.problem;
  const TokenPlace place = place_of(impl_->program.partition, position);
  if (!impl_->is_local(place.rank))
    throw_usage(fmt::format("another process holds token {}", position));
  std::vector<std::byte> bytes(out.size() * static_cast<size_t>(size_bytes(problem.dtype)));
  impl_->local(place.rank).read_row(batch, place.row, bytes);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_element(problem.dtype, bytes.data(), static_cast<int64_t>(i));
  for (size_t head = 0; head < lse.size(); ++head)
    lse[head] = impl_->read_lse(batch, static_cast<int64_t>(head), position, place);
}

/// Where ranks hold heads, those of all are put together.
std::span<const float> GpuExecutor::Impl::gradients(Payload payload, int part, int64_t batch,
                                                    int64_t position,
                                                    std::vector<float>& values) const {
  const Problem& problem = program.problem;
  RING_ASSERT(program.has_attention && has_backward(problem.pass));
  const int64_t heads = payload == Payload::kQueryGradients ? problem.heads : problem.kv_heads;
  values.resize(static_cast<size_t>(heads * (part == 1 ? problem.head_dim_v : problem.head_dim)));
  const TokenPlace place = place_of(program.partition, position);
  if (!is_local(place.rank)) throw_usage(fmt::format("another process holds token {}", position));
  if (program.rank_programs[static_cast<size_t>(place.rank)].storage.has_home_inputs) {
    local(place.rank).read_gradients(payload, part, kHomeBuffer, batch, place.row, values);
    return values;
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
    for (size_t i = 0; i < storage.shaped_buffers.size() && is_local(rank); ++i) {
      const BufferShape& shape = storage.shaped_buffers[i];
      if (shape.payload != payload || shape.filled_with < 0) continue;
      const int64_t row = index_of(program.tokens_of(shape.filled_with), position);
      if (row < 0) continue;
      local(rank).read_gradients(payload, part, storage.buffers + static_cast<int32_t>(i), batch,
                                 row, values);
    }
  }
  return values;
}

std::span<const float> GpuExecutor::query_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kQueryGradients, 0, batch, position, impl_->dq);
}
std::span<const float> GpuExecutor::key_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 0, batch, position, impl_->dk);
}
std::span<const float> GpuExecutor::value_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 1, batch, position, impl_->dv);
}

Bytes GpuExecutor::storage_bytes(int rank) const {
  return impl_->is_local(rank) ? impl_->local(rank).bytes() : 0;
}

double GpuExecutor::clock_uncertainty_s() const { return impl_->runtime.clock_uncertainty_s(); }
bool GpuExecutor::is_captured() const { return impl_->captured != kNotCaptured; }
const DevicePlan& GpuExecutor::plan() const { return impl_->plan; }
OpStamps GpuExecutor::stamps(OpId op) const { return impl_->stamps_of(op); }

}  // namespace ring::cuda
