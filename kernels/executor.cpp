#include "kernels/executor.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "kernels/cores.h"
#include "kernels/executor_lane.h"
#include "kernels/transport/in_process.h"

namespace ring {
namespace {

/// How often a run looks whether it was interrupted.
constexpr int kInterruptPollMs = 50;

int32_t open_message(Transport& transport, int rank, const Op& op) {
  if (op.kind == OpKind::kSend)
    return transport.open_send({rank, op.peer, op.message}, op.bytes, op.protocol);
  if (op.kind == OpKind::kReceive)
    return transport.open_receive({op.peer, rank, op.message}, op.bytes);
  return -1;
}

void require_runnable(const RingProgram& program) {
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) {
      const bool is_attention =
          op.kind == OpKind::kAttend || op.kind == OpKind::kMerge || op.kind == OpKind::kFinalize;
      if (is_attention && !program.has_attention)
        throw_usage("the program has " + std::string(name(op.kind)) +
                        " ops but does not say which attention they belong to",
                    "only compute, copy, send and receive can run without a problem");
    }
  }
}

}  // namespace

struct CpuExecutor::Impl {
  struct Rank {
    RankMemory memory;
    std::vector<Gate> progress;
    std::vector<std::unique_ptr<LaneRunner>> lanes;
    Rank(const RingProgram& program, int rank)
        : memory(program, rank), progress(static_cast<size_t>(program.lanes)) {}
  };

  Impl(const RingProgram& program_in, const DataSource& data, ExecutorOptions options_in);
  void run_forward(const DataSource& data);
  void take_forward(int rank);
  void take_output(int rank, int32_t buffer, const TokenRanges& tokens);
  ~Impl();

  void prepare_rank(int rank);
  void start_threads(const DataSource& data);
  void lane_thread(int rank, int lane, const DataSource& data);
  void prepare_lane(int rank, int lane, const DataSource& data);
  void run_lane(int rank, int lane);
  void stop();
  void fail(std::exception_ptr failure);
  void wait_for_lanes(Gate& gate, bool is_interruptible);
  void collect();
  /// From the rank that finalized the row, which need not be the one that holds the output.
  float lse_at(int64_t batch, int64_t head, int64_t position) const;
  /// Rank that holds a token, and its row there.
  std::pair<int, int64_t> place_of(int64_t position) const;
  /// One token of a gradient, of all heads: of its owner, or put together from the ranks that hold
  /// some heads of it.
  std::span<const float> gradients(Payload payload, int part, int64_t batch,
                                   int64_t position) const;
  uint32_t lane_count() const { return static_cast<uint32_t>(ranks.size()) * lanes; }

  const RingProgram& program;
  ExecutorOptions options;
  Cores cores;
  int used_cores = 1;
  uint32_t lanes = 0;
  InProcessTransport transport;
  std::vector<std::unique_ptr<Rank>> ranks;
  struct Finalized {
    int rank;
    const Op* op;
  };
  std::vector<Finalized> finalized;  ///< Ops that write output.
  /// dQ, dK and dV of the token that was asked for last, where ranks hold heads.
  mutable std::array<std::vector<float>, 3> assembled;

  /// What a backward pass begins with; only while the executor is made.
  std::unique_ptr<RingProgram> forward_program;
  std::unique_ptr<CpuExecutor> forward;

  // How the threads and the caller wait for each other.
  Gate prepared;    ///< Lanes that are ready for their first run.
  Gate run_number;  ///< Raised by the caller to start a run; closed to end the threads.
  Gate arrived;     ///< Lanes that are at the start of the run.
  Gate started;     ///< Raised by the last lane that arrives.
  Gate finished;    ///< Lanes that are through with the run.
  uint32_t runs = 0;
  int64_t start_ns = 0;
  std::atomic<bool> is_stopped{false};
  std::mutex failure_mutex;
  std::exception_ptr failure;

  std::vector<Slice> blank_slices;  ///< One per op, in the order of a sorted timeline.
  Timeline timeline;
  std::vector<std::thread> threads;
};

CpuExecutor::Impl::Impl(const RingProgram& program_in, const DataSource& data,
                        ExecutorOptions options_in)
    : program(program_in), options(options_in), lanes(static_cast<uint32_t>(program.lanes)) {
  require_sound(program);
  require_runnable(program);
  if (program.has_attention && program.problem.pass == Pass::kBackward) run_forward(data);
  used_cores = options.cores > 0 ? std::min(options.cores, cores.count()) : cores.count();
  for (int rank = 0; rank < program.ranks(); ++rank) prepare_rank(rank);
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.name = program.name;
  timeline.ranks = program.ranks();
  timeline.lanes = program.lanes;
  timeline.slices.reserve(blank_slices.size());
  start_threads(data);
  forward.reset();
  forward_program.reset();
}

void CpuExecutor::Impl::run_forward(const DataSource& data) {
  Problem problem = program.problem;
  problem.pass = Pass::kForward;
  Tuning tuning = program.tuning;
  tuning.backward = BackwardMoves::kAuto;
  tuning.accumulation_steps = 1;
  tuning.optimizer_gap_ps = 0;
  forward_program = std::make_unique<RingProgram>(plan(problem, tuning));
  forward = std::make_unique<CpuExecutor>(*forward_program, data, options);
  if (!forward->run().is_complete)
    throw Error(ErrorKind::kInterrupted, "stopped during the forward pass");
}

/// Copies output and lse of the own rows, and of the heads that a buffer is filled with; the shards
/// of both programs are the same.
void CpuExecutor::Impl::take_forward(int rank) {
  if (!forward) return;
  take_output(rank, kHomeBuffer, program.partition.shard(rank));
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
  for (size_t i = 0; i < storage.shaped_buffers.size(); ++i) {
    const BufferShape& shape = storage.shaped_buffers[i];
    if (shape.payload != Payload::kOutput || shape.filled_with < 0) continue;
    take_output(rank, storage.buffers + static_cast<int32_t>(i),
                program.tokens_of(shape.filled_with));
  }
}

void CpuExecutor::Impl::take_output(int rank, int32_t buffer, const TokenRanges& tokens) {
  const RankMemory& memory = ranks[static_cast<size_t>(rank)]->memory;
  const Problem& problem = program.problem;
  const TensorView to = memory.tensor(Payload::kOutput, 0, buffer);
  const int64_t lse_rows = token_count(tokens), element = size_bytes(problem.dtype);
  const auto head_bytes = static_cast<size_t>(to.dim * element);
  std::vector<float> out(static_cast<size_t>(problem.heads * problem.head_dim_v));
  std::vector<float> lse(static_cast<size_t>(problem.heads));
  int64_t row = 0;
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i, ++row) {
      for (int64_t batch = 0; batch < problem.batch; ++batch) {
        forward->read_output(batch, range.position(i), out, lse);
        const std::span<const std::byte> bytes = forward->output_bytes(batch, range.position(i));
        for (int64_t head = to.heads.begin; head < to.heads.end; ++head) {
          const auto from = bytes.subspan(static_cast<size_t>(head) * head_bytes, head_bytes);
          std::copy(from.begin(), from.end(),
                    to.data + to.at(row, batch, problem.batch, head) * element);
          const int64_t plane = batch * to.heads.count() + head - to.heads.begin;
          memory.lse_of_output(buffer)[plane * lse_rows + row] = lse[static_cast<size_t>(head)];
        }
      }
    }
  }
}

CpuExecutor::Impl::~Impl() {
  run_number.close();
  for (std::thread& thread : threads) thread.join();
}

void CpuExecutor::Impl::prepare_rank(int rank) {
  ranks.push_back(std::make_unique<Rank>(program, rank));
  Rank& at = *ranks.back();
  const RankProgram& rank_program = program.rank_programs[static_cast<size_t>(rank)];
  const RankContext context{&program, &at.memory, &at.progress, &transport, &is_stopped};
  std::vector<std::vector<PreparedOp>> by_lane(lanes);
  Bytes kept_bytes = options.span_cache_bytes;
  for (size_t i = 0; i < rank_program.ops.size(); ++i) {
    const Op& op = rank_program.ops[i];
    PreparedOp prepared_op;
    prepared_op.op = &op;
    if (op.kind == OpKind::kFinalize && op.payload != Payload::kPartial)
      finalized.push_back({rank, &op});
    prepared_op.index = static_cast<int64_t>(i);
    prepared_op.deps = rank_program.deps_of(op);
    prepared_op.slot = open_message(transport, rank, op);
    if (computes_pairs(op.kind)) prepared_op.spans = prepare_spans(program, op, kept_bytes);
    if ((op.kind == OpKind::kCopy || op.kind == OpKind::kAdd) && program.has_attention)
      prepared_op.row_runs = prepare_row_runs(program, op);
    by_lane[static_cast<size_t>(op.lane)].push_back(std::move(prepared_op));
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    for (const PreparedOp& op : by_lane[lane])
      blank_slices.push_back(slice_of(program, {rank, op.index}));
    at.lanes.push_back(
        std::make_unique<LaneRunner>(context, static_cast<int>(lane), std::move(by_lane[lane])));
  }
}

void CpuExecutor::Impl::start_threads(const DataSource& data) {
  try {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      for (int lane = 0; lane < program.lanes; ++lane)
        threads.emplace_back([this, rank, lane, &data] { lane_thread(rank, lane, data); });
    }
  } catch (const std::system_error& error) {
    run_number.close();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    throw Error(ErrorKind::kRunFailed,
                "cannot start thread " + std::to_string(threads.size()) + ": " + error.what(),
                "use fewer ranks or lanes");
  }
  wait_for_lanes(prepared, false);
  if (failure) {
    run_number.close();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    std::rethrow_exception(failure);
  }
}

void CpuExecutor::Impl::fail(std::exception_ptr caught) {
  {
    const std::lock_guard lock(failure_mutex);
    if (!failure) failure = caught;
  }
  stop();
}

void CpuExecutor::Impl::stop() {
  is_stopped.store(true);
  transport.stop();
  for (const auto& rank : ranks) {
    for (Gate& gate : rank->progress) gate.close();
  }
}

void CpuExecutor::Impl::lane_thread(int rank, int lane, const DataSource& data) {
  prepare_lane(rank, lane, data);
  prepared.add_one();
  for (uint32_t number = 1; run_number.wait(number); ++number) {
    run_lane(rank, lane);
    finished.add_one();
  }
}

void CpuExecutor::Impl::prepare_lane(int rank, int lane, const DataSource& data) {
  try {
    cores.bind_this_thread(rank % used_cores);
    Rank& at = *ranks[static_cast<size_t>(rank)];
    if (lane == kComputeLane) {
      at.memory.fill(program, rank, data);
      take_forward(rank);
    }
    at.lanes[static_cast<size_t>(lane)]->reserve();
  } catch (...) {
    fail(std::current_exception());
  }
}

void CpuExecutor::Impl::run_lane(int rank, int lane) {
  Rank& at = *ranks[static_cast<size_t>(rank)];
  if (arrived.add_one() == lane_count()) {
    start_ns = now_ns();
    started.raise(1);
  }
  // One compute lane a core stays awake, so that the cores start together: waking a core that has
  // gone idle takes tens of microseconds. The others are woken.
  const bool is_awake = lane == kComputeLane && rank < used_cores;
  while (is_awake && started.value() < 1) sched_yield();
  started.wait(1);
  try {
    at.lanes[static_cast<size_t>(lane)]->run();
  } catch (...) {
    fail(std::current_exception());
  }
}

void CpuExecutor::Impl::wait_for_lanes(Gate& gate, bool is_interruptible) {
  do {
    const bool is_interrupted = options.interrupt != nullptr && options.interrupt->load();
    if (is_interruptible && is_interrupted && !is_stopped.load()) stop();
  } while (!gate.wait_for(lane_count(), kInterruptPollMs));
}

void CpuExecutor::Impl::collect() {
  timeline.slices.clear();
  size_t first = 0;
  for (const auto& rank : ranks) {
    for (const auto& lane : rank->lanes) {
      const LaneRecorder& recorder = lane->recorder();
      for (int64_t i = 0; i < recorder.done(); ++i) {
        Slice slice = blank_slices[first + static_cast<size_t>(i)];
        slice.posted_ps = (recorder.at(i).posted_ns - start_ns) * 1000;
        slice.start_ps = (recorder.at(i).start_ns - start_ns) * 1000;
        slice.end_ps = (recorder.at(i).end_ns - start_ns) * 1000;
        timeline.slices.push_back(slice);
      }
      first += lane->ops().size();
    }
  }
  timeline.is_complete = timeline.slices.size() == blank_slices.size();
}

std::pair<int, int64_t> CpuExecutor::Impl::place_of(int64_t position) const {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const int64_t row = index_of(program.partition.shard(rank), position);
    if (row >= 0) return {rank, row};
  }
  throw_usage("no rank holds token " + std::to_string(position));
}

float CpuExecutor::Impl::lse_at(int64_t batch, int64_t head, int64_t position) const {
  const auto [home, row] = place_of(position);
  const auto home_lse = [&, home = home, row = row] {
    const RankMemory& memory = ranks[static_cast<size_t>(home)]->memory;
    return memory.lse.as<float>()[(batch * program.problem.heads + head) * memory.rows + row];
  };
  if (!has_forward(program.problem.pass)) return home_lse();  // It was taken over.
  for (const Finalized& done : finalized) {
    const Op& op = *done.op;
    if (head < op.head_begin || head >= op.head_end) continue;
    if (op.buffer == kHomeBuffer && (done.rank != home || row < op.q_begin || row >= op.q_end))
      continue;
    const RankMemory& memory = ranks[static_cast<size_t>(done.rank)]->memory;
    if (op.buffer == kHomeBuffer) return home_lse();
    const int64_t there = index_of(program.tokens_of(op.q_shard), position);
    if (there < op.q_begin || there >= op.q_end) continue;
    const KvBuffer& buffer = memory.buffer(op.buffer);
    const int64_t first = batch * buffer.query_heads.count() + head - buffer.query_heads.begin;
    return buffer.v.as<float>()[first * buffer.tokens + op.q_at + there - op.q_begin];
  }
  throw_usage("no op writes the result of token " + std::to_string(position));
}

CpuExecutor::CpuExecutor(const RingProgram& program, const DataSource& data,
                         ExecutorOptions options)
    : impl_(std::make_unique<Impl>(program, data, options)) {}

CpuExecutor::~CpuExecutor() = default;

const Timeline& CpuExecutor::run() {
  Impl& impl = *impl_;
  impl.is_stopped.store(false);
  impl.transport.begin_run();
  for (const auto& rank : impl.ranks) {
    for (Gate& gate : rank->progress) gate.reset();
  }
  impl.arrived.reset();
  impl.started.reset();
  impl.finished.reset();
  impl.run_number.raise(++impl.runs);
  impl.wait_for_lanes(impl.finished, true);
  if (impl.failure) std::rethrow_exception(std::exchange(impl.failure, nullptr));
  impl.collect();
  return impl.timeline;
}

std::span<const std::byte> CpuExecutor::output_bytes(int64_t batch, int64_t position) const {
  const Problem& problem = impl_->program.problem;
  RING_ASSERT(impl_->program.has_attention && batch >= 0 && batch < problem.batch);
  const auto [rank, row] = impl_->place_of(position);
  const RankMemory& memory = impl_->ranks[static_cast<size_t>(rank)]->memory;
  const Bytes bytes = problem.heads * problem.head_dim_v * size_bytes(problem.dtype);
  return {memory.out.data() + (row * problem.batch + batch) * bytes, static_cast<size_t>(bytes)};
}

void CpuExecutor::read_output(int64_t batch, int64_t position, std::span<float> out,
                              std::span<float> lse) const {
  const Problem& problem = impl_->program.problem;
  const std::span<const std::byte> bytes = output_bytes(batch, position);
  RING_ASSERT(static_cast<int64_t>(out.size()) == problem.heads * problem.head_dim_v);
  RING_ASSERT(static_cast<int64_t>(lse.size()) == problem.heads);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load_element(problem.dtype, bytes.data(), static_cast<int64_t>(i));
  for (int64_t head = 0; head < problem.heads; ++head)
    lse[static_cast<size_t>(head)] = impl_->lse_at(batch, head, position);
}

std::span<const float> CpuExecutor::Impl::gradients(Payload payload, int part, int64_t batch,
                                                    int64_t position) const {
  RING_ASSERT(program.has_attention && has_backward(program.problem.pass));
  const auto [home, home_row] = place_of(position);
  const int64_t batches = program.problem.batch;
  const TensorView own =
      ranks[static_cast<size_t>(home)]->memory.tensor(payload, part, kHomeBuffer);
  const auto width = static_cast<size_t>(own.heads.count() * own.dim);
  if (program.rank_programs[static_cast<size_t>(home)].storage.has_home_inputs) {
    const float* const values = reinterpret_cast<const float*>(own.data);
    return {values + own.at(home_row, batch, batches, 0), width};
  }
  std::vector<float>& whole =
      assembled[payload == Payload::kQueryGradients ? 0 : static_cast<size_t>(1 + part)];
  whole.resize(width);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
    for (size_t i = 0; i < storage.shaped_buffers.size(); ++i) {
      const BufferShape& shape = storage.shaped_buffers[i];
      if (shape.payload != payload || shape.filled_with < 0) continue;
      const TensorView some = ranks[static_cast<size_t>(rank)]->memory.tensor(
          payload, part, storage.buffers + static_cast<int32_t>(i));
      const int64_t row = index_of(program.tokens_of(shape.filled_with), position);
      if (row < 0) continue;
      const float* const from = reinterpret_cast<const float*>(some.data) +
                                some.at(row, batch, batches, some.heads.begin);
      std::copy(from, from + some.heads.count() * some.dim,
                whole.begin() + some.heads.begin * some.dim);
    }
  }
  return whole;
}

std::span<const float> CpuExecutor::query_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kQueryGradients, 0, batch, position);
}

std::span<const float> CpuExecutor::key_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 0, batch, position);
}

std::span<const float> CpuExecutor::value_gradients(int64_t batch, int64_t position) const {
  return impl_->gradients(Payload::kKeyGradients, 1, batch, position);
}

Bytes CpuExecutor::storage_bytes(int rank) const {
  return impl_->ranks[static_cast<size_t>(rank)]->memory.bytes();
}

int CpuExecutor::cores() const { return impl_->used_cores; }

}  // namespace ring
