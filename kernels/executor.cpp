#include "kernels/executor_impl.h"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <string>

#include "core/error.h"
#include "core/program_check.h"

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

Bytes CpuExecutor::storage_bytes(int rank) const {
  return impl_->ranks[static_cast<size_t>(rank)]->memory.bytes();
}

int CpuExecutor::cores() const { return impl_->used_cores; }

}  // namespace ring
