#include "kernels/executor_lane.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "kernels/backward_run.h"

namespace ring {
namespace {

void to_key_spans(const std::vector<KeyInterval>& intervals, std::vector<cpu::KeySpan>& spans) {
  spans.resize(intervals.size());
  for (size_t i = 0; i < intervals.size(); ++i) {
    spans[i] = {static_cast<int32_t>(intervals[i].begin), static_cast<int32_t>(intervals[i].end)};
  }
}

void busy_wait(Picoseconds time_ps) {
  const int64_t end_ns = now_ns() + time_ps / 1000;
  while (now_ns() < end_ns) {
  }
}

}  // namespace

OpSpans prepare_spans(const RingProgram& program, const Op& op, Bytes& kept_bytes) {
  OpSpans spans;
  const int64_t rows = op.q_end - op.q_begin;
  spans.sees_all = op.active_rows == rows && op.edge_rows == 0;
  if (spans.sees_all) return spans;
  spans.queries = slice(program.partition.shard(op.q_shard), op.q_begin, op.q_end);
  spans.keys = slice(program.partition.shard(op.kv_shard), op.kv_begin, op.kv_end);
  const Bytes bytes = rows * static_cast<Bytes>(sizeof(cpu::KeySpan));
  if (bytes > kept_bytes) return spans;
  kept_bytes -= bytes;
  std::vector<KeyInterval> intervals;
  program.problem.mask.fill_spans(spans.queries, spans.keys, intervals);
  to_key_spans(intervals, spans.kept);
  return spans;
}

LaneRunner::LaneRunner(const RankContext& context, int lane, std::vector<PreparedOp> ops)
    : context_(context),
      lane_(lane),
      ops_(std::move(ops)),
      recorder_(static_cast<int64_t>(ops_.size())),
      workspace_(cpu::detect_caches()) {}

void LaneRunner::reserve() {
  int64_t bytes = 0, rows = 0;
  for (const PreparedOp& prepared : ops_) {
    if (!computes_pairs(prepared.op->kind)) continue;
    bytes = std::max(bytes, scratch_bytes(*prepared.op));
    const bool is_kept = prepared.spans.sees_all || !prepared.spans.kept.empty();
    if (!is_kept) rows = std::max(rows, prepared.op->q_end - prepared.op->q_begin);
  }
  if (bytes > 0) std::memset(workspace_.reserve(bytes), 0, static_cast<size_t>(bytes));
  intervals_.resize(static_cast<size_t>(rows));
  scratch_spans_.resize(static_cast<size_t>(rows));
}

int64_t LaneRunner::scratch_bytes(const Op& op) const {
  if (op.kind == OpKind::kBackward)
    return cpu::backward_workspace_bytes(backward_shape(context_.program->problem, op));
  return cpu::workspace_bytes(shape_of(op), workspace_.caches());
}

void LaneRunner::run() {
  recorder_.clear();
  Gate& done = (*context_.progress)[static_cast<size_t>(lane_)];
  for (const PreparedOp& prepared : ops_) {
    if (!wait_for(prepared)) return;
    OpTimes times;
    if (!execute(prepared, times)) return;
    recorder_.record(times);
    done.raise(static_cast<uint32_t>(recorder_.done()));
  }
}

bool LaneRunner::wait_for(const PreparedOp& prepared) {
  for (const LanePoint& point : prepared.deps) {
    Gate& gate = (*context_.progress)[static_cast<size_t>(point.lane)];
    if (!gate.wait(static_cast<uint32_t>(point.position + 1))) return false;
  }
  return !context_.is_stopped->load(std::memory_order_relaxed);
}

bool LaneRunner::execute(const PreparedOp& prepared, OpTimes& times) {
  const Op& op = *prepared.op;
  times.posted_ns = times.start_ns = now_ns();
  switch (op.kind) {
    case OpKind::kAttend:
      attend(prepared);
      break;
    case OpKind::kSend:
    case OpKind::kReceive:
      return transfer(prepared, times);
    case OpKind::kMerge:
      merge(op);
      break;
    case OpKind::kCopy:
      std::memcpy(context_.memory->home.v.data(), context_.memory->home.k.data(),
                  static_cast<size_t>(op.bytes));
      break;
    case OpKind::kFinalize:
      finalize(op);
      break;
    case OpKind::kCompute:
      busy_wait(op.fixed_ps);
      break;
    case OpKind::kBackward:
      run_backward(*context_.memory, op, spans_of(prepared), workspace_);
      break;
    case OpKind::kDelta:
      run_delta(*context_.memory, op);
      break;
    case OpKind::kAdd:
      run_add(*context_.memory, op);
      break;
  }
  times.end_ns = now_ns();
  return true;
}

bool LaneRunner::transfer(const PreparedOp& prepared, OpTimes& times) {
  const std::array<Part, kMaxParts> parts = message_parts(*context_.memory, *prepared.op);
  Transfer transfer;
  if (prepared.op->kind == OpKind::kSend) {
    std::array<ConstPart, kMaxParts> sent;
    for (size_t i = 0; i < kMaxParts; ++i) sent[i] = {parts[i].data, parts[i].bytes};
    transfer = context_.transport->send(prepared.slot, sent);
  } else {
    transfer = context_.transport->receive(prepared.slot, parts);
  }
  times.start_ns = std::max(transfer.start_ns, times.posted_ns);
  times.end_ns = std::max(transfer.end_ns, times.start_ns);
  return transfer.is_complete;
}

cpu::AttendShape LaneRunner::shape_of(const Op& op) const {
  const Problem& problem = context_.program->problem;
  const int64_t group = problem.heads / problem.kv_heads;
  cpu::AttendShape shape;
  shape.q_rows = op.q_end - op.q_begin;
  shape.kv_rows = op.kv_end - op.kv_begin;
  shape.heads = op.head_end - op.head_begin;
  shape.kv_heads = static_cast<int>(shape.heads / group);
  shape.dim_qk = static_cast<int>(problem.head_dim);
  shape.dim_v = static_cast<int>(problem.head_dim_v);
  shape.dtype = problem.dtype;
  shape.scale = problem.softmax_scale();
  return shape;
}

const cpu::KeySpan* LaneRunner::spans_of(const PreparedOp& prepared) {
  if (prepared.spans.sees_all) return nullptr;
  if (!prepared.spans.kept.empty()) return prepared.spans.kept.data();
  context_.program->problem.mask.fill_spans(prepared.spans.queries, prepared.spans.keys,
                                            intervals_);
  to_key_spans(intervals_, scratch_spans_);
  return scratch_spans_.data();
}

void LaneRunner::attend(const PreparedOp& prepared) {
  const Op& op = *prepared.op;
  RankMemory& memory = *context_.memory;
  const Problem& problem = context_.program->problem;
  if (op.starts_state) memory.reset_state(op);
  const KvBuffer& buffer = memory.buffer(op.buffer);
  const int64_t element = size_bytes(problem.dtype);
  const int64_t kv_head = op.head_begin / (problem.heads / problem.kv_heads);
  const int64_t q_token = problem.batch * problem.heads * problem.head_dim;
  const int64_t k_token = problem.batch * problem.kv_heads * problem.head_dim;
  const int64_t v_token = problem.batch * problem.kv_heads * problem.head_dim_v;
  const cpu::AttendShape shape = shape_of(op);
  const cpu::KeySpan* const spans = spans_of(prepared);
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const int64_t q_at =
        op.q_begin * q_token + (batch * problem.heads + op.head_begin) * problem.head_dim;
    const int64_t kv_at = batch * problem.kv_heads + kv_head;
    const int64_t k_at = op.buffer_begin * k_token + kv_at * problem.head_dim;
    const int64_t v_at = op.buffer_begin * v_token + kv_at * problem.head_dim_v;
    cpu::attend(shape, {memory.q.data() + q_at * element, q_token, problem.head_dim},
                {buffer.k.data() + k_at * element, k_token, problem.head_dim},
                {buffer.v.data() + v_at * element, v_token, problem.head_dim_v}, spans,
                state_view(memory, op.state, batch, op.head_begin, op.q_begin), workspace_);
  }
}

void LaneRunner::merge(const Op& op) {
  RankMemory& memory = *context_.memory;
  const Problem& problem = context_.program->problem;
  const int dim_v = static_cast<int>(problem.head_dim_v);
  for_row_runs(memory, op, [&](int64_t batch, int64_t head, int64_t row, int64_t rows) {
    cpu::merge_state(state_view(memory, op.state, batch, head, row),
                     state_view(memory, op.source_state, batch, head, row), rows, dim_v);
  });
}

void LaneRunner::finalize(const Op& op) {
  RankMemory& memory = *context_.memory;
  const Problem& problem = context_.program->problem;
  if (op.starts_state) memory.reset_state(op);
  const int64_t token = problem.batch * problem.heads * problem.head_dim_v;
  cpu::AttendShape shape = shape_of(op);
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const int64_t head = batch * problem.heads + op.head_begin;
    const int64_t at = op.q_begin * token + head * problem.head_dim_v;
    cpu::finalize(shape, state_view(memory, op.state, batch, op.head_begin, op.q_begin),
                  {memory.out.data() + at * size_bytes(problem.dtype), token, problem.head_dim_v},
                  memory.lse.as<float>() + head * memory.rows + op.q_begin);
  }
}

}  // namespace ring
