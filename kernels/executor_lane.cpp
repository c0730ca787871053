#include "kernels/executor_lane.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "kernels/cpu/naive.h"
#include "kernels/cpu/state.h"

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
  spans.queries = slice(program.tokens_of(op.q_shard), op.q_begin, op.q_end);
  spans.keys = slice(program.tokens_of(op.kv_shard), op.kv_begin, op.kv_end);
  const Bytes bytes = rows * static_cast<Bytes>(sizeof(cpu::KeySpan));
  if (bytes > kept_bytes) return spans;
  kept_bytes -= bytes;
  std::vector<KeyInterval> intervals;
  program.problem.mask.fill_spans(spans.queries, spans.keys, intervals);
  to_key_spans(intervals, spans.kept);
  return spans;
}

std::vector<RowRun> prepare_row_runs(const RingProgram& program, const Op& op) {
  const bool is_add = op.kind == OpKind::kAdd;
  const bool names_keys = is_add && op.payload == Payload::kKeyGradients;
  const TokenRanges tokens = names_keys
                                 ? slice(program.tokens_of(op.kv_shard), op.kv_begin, op.kv_end)
                                 : slice(program.tokens_of(op.q_shard), op.q_begin, op.q_end);
  const int64_t source_at = is_add ? op.q_at : op.buffer_begin;
  const int64_t target_at = is_add ? op.buffer_begin : op.q_at;
  std::vector<RowRun> runs;
  int64_t done = 0;
  for (const AffineRange& range : tokens) {
    for (int64_t i = 0; i < range.count; ++i, ++done) {
      const int64_t position = range.position(i);
      const int64_t source = op.source_order < 0
                                 ? source_at + done
                                 : index_of(program.tokens_of(op.source_order), position);
      const int64_t target = op.target_order < 0
                                 ? target_at + done
                                 : index_of(program.tokens_of(op.target_order), position);
      if (!runs.empty() && runs.back().source + runs.back().count == source &&
          runs.back().target + runs.back().count == target) {
        ++runs.back().count;
      } else {
        runs.push_back({source, target, 1});
      }
    }
  }
  return runs;
}

LaneRunner::LaneRunner(const RankContext& context, int lane, std::vector<PreparedOp> ops)
    : context_(context),
      lane_(lane),
      ops_(std::move(ops)),
      recorder_(static_cast<int64_t>(ops_.size())),
      workspace_(cpu::detect_caches()) {}

void LaneRunner::reserve() {
  int64_t bytes = 0, rows = 0, score_bytes = 0;
  for (const PreparedOp& prepared : ops_) {
    if (!computes_pairs(prepared.op->kind)) continue;
    bytes = std::max(bytes, scratch_bytes(*prepared.op));
    if (prepared.op->method == AttendMethod::kNaive)
      score_bytes = std::max(score_bytes, prepared.op->bytes);
    const bool is_kept = prepared.spans.sees_all || !prepared.spans.kept.empty();
    if (!is_kept) rows = std::max(rows, prepared.op->q_end - prepared.op->q_begin);
  }
  if (bytes > 0) std::memset(workspace_.reserve(bytes), 0, static_cast<size_t>(bytes));
  if (score_bytes > 0) {
    scores_ = Pages(score_bytes);
    scores_.touch();
  }
  intervals_.resize(static_cast<size_t>(rows));
  scratch_spans_.resize(static_cast<size_t>(rows));
}

int64_t LaneRunner::scratch_bytes(const Op& op) const {
  if (op.kind == OpKind::kBackward)
    return cpu::backward_workspace_bytes(backward_shape(context_.program->problem, op));
  return cpu::workspace_bytes(shape_of(op, {op.head_begin, op.head_end}), workspace_.caches());
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
      copy(prepared);
      break;
    case OpKind::kFinalize:
      finalize(op);
      break;
    case OpKind::kCompute:
      busy_wait(op.fixed_ps);
      break;
    case OpKind::kBackward:
      run_backward(*context_.memory, op, spans_of(prepared), workspace_, scores_.as<float>());
      break;
    case OpKind::kDelta:
      run_delta(*context_.memory, op);
      break;
    case OpKind::kAdd:
      run_add(*context_.memory, op, prepared.row_runs);
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
    if (transfer.is_complete && prepared.op->payload == Payload::kPartial)
      context_.memory->complete_partial(*prepared.op);
  }
  times.start_ns = std::max(transfer.start_ns, times.posted_ns);
  times.end_ns = std::max(transfer.end_ns, times.start_ns);
  return transfer.is_complete;
}

cpu::AttendShape LaneRunner::shape_of(const Op& op, HeadRange heads) const {
  const Problem& problem = context_.program->problem;
  cpu::AttendShape shape;
  shape.q_rows = op.q_end - op.q_begin;
  shape.kv_rows = op.kv_end - op.kv_begin;
  shape.heads = static_cast<int>(heads.count());
  shape.kv_heads = static_cast<int>(kv_heads_of(problem, heads).count());
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
  if (op.starts_state) context_.memory->reset_state(op);
  const cpu::KeySpan* const spans = spans_of(prepared);
  if (op.method == AttendMethod::kNaive) {
    attend_naively(op, spans);
    return;
  }
  const int64_t group = context_.program->problem.heads / context_.program->problem.kv_heads;
  const bool is_contiguous = ring::is_contiguous(*context_.memory, op, op.state);
  // A call takes whole groups of query heads, or a part of one group.
  for (int64_t head = op.head_begin; head < op.head_end;) {
    int64_t end = std::min<int64_t>(op.head_end, (head / group + 1) * group);
    if (!is_contiguous) end = head + 1;
    if (is_contiguous && head % group == 0 && op.head_end / group * group > head)
      end = op.head_end / group * group;
    attend_heads(op, {head, end}, spans);
    head = end;
  }
}

void LaneRunner::attend_heads(const Op& op, HeadRange heads, const cpu::KeySpan* spans) {
  const RankMemory& memory = *context_.memory;
  const Problem& problem = context_.program->problem;
  const cpu::AttendShape shape = shape_of(op, heads);
  const HeadRange kv_heads = kv_heads_of(problem, heads);
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const auto view = [&](Payload payload, int part, int32_t buffer, int64_t row, int64_t head) {
      const TensorView tensor = memory.tensor(payload, part, buffer);
      const int64_t count = tensor.heads.count();
      const int64_t at = ((row * problem.batch + batch) * count + head - tensor.heads.begin);
      return cpu::ConstView{tensor.data + at * tensor.dim * size_bytes(problem.dtype),
                            problem.batch * count * tensor.dim, tensor.dim};
    };
    cpu::attend(shape, view(Payload::kQuery, 0, op.q_buffer, op.q_at, heads.begin),
                view(Payload::kKeyValue, 0, op.buffer, op.buffer_begin, kv_heads.begin),
                view(Payload::kKeyValue, 1, op.buffer, op.buffer_begin, kv_heads.begin), spans,
                state_view(memory, op, op.state, batch, heads.begin), workspace_);
  }
}

void LaneRunner::attend_naively(const Op& op, const cpu::KeySpan* spans) {
  const RankMemory& memory = *context_.memory;
  const Problem& problem = context_.program->problem;
  const cpu::AttendShape shape = shape_of(op, {op.head_begin, op.head_begin + 1});
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    for (int64_t head = op.head_begin; head < op.head_end; ++head) {
      const auto view = [&](Payload payload, int part, int32_t buffer, int64_t row, int64_t at) {
        const TensorView tensor = memory.tensor(payload, part, buffer);
        const int64_t count = tensor.heads.count();
        const int64_t first = (row * problem.batch + batch) * count + at - tensor.heads.begin;
        return cpu::ConstView{tensor.data + first * tensor.dim * size_bytes(problem.dtype),
                              problem.batch * count * tensor.dim, tensor.dim};
      };
      const int64_t kv_head = head / (problem.heads / problem.kv_heads);
      cpu::attend_naively(shape, view(Payload::kQuery, 0, op.q_buffer, op.q_at, head),
                          view(Payload::kKeyValue, 0, op.buffer, op.buffer_begin, kv_head),
                          view(Payload::kKeyValue, 1, op.buffer, op.buffer_begin, kv_head), spans,
                          state_view(memory, op, op.state, batch, head), scores_.as<float>());
    }
  }
}

void LaneRunner::merge(const Op& op) {
  RankMemory& memory = *context_.memory;
  const int dim_v = static_cast<int>(context_.program->problem.head_dim_v);
  if (op.starts_state) memory.reset_state(op);
  const std::array<int32_t, 2> states = {op.state, op.source_state};
  for_row_runs(memory, op, states, [&](int64_t batch, int64_t head, int64_t rows) {
    cpu::merge_state(state_view(memory, op, op.state, batch, head),
                     state_view(memory, op, op.source_state, batch, head), rows, dim_v);
  });
}

void LaneRunner::finalize(const Op& op) {
  RankMemory& memory = *context_.memory;
  const Problem& problem = context_.program->problem;
  if (op.starts_state) memory.reset_state(op);
  const int dim_v = static_cast<int>(problem.head_dim_v);
  if (op.payload == Payload::kPartial) {
    for_row_runs(memory, op, {&op.state, 1}, [&](int64_t batch, int64_t head, int64_t rows) {
      cpu::normalize_state(state_view(memory, op, op.state, batch, head), rows, dim_v);
    });
    return;
  }
  const bool is_home = op.buffer == kHomeBuffer;
  const KvBuffer& target = memory.buffer(op.buffer);
  const TensorView out = memory.tensor(Payload::kOutput, 0, op.buffer);
  float* const lse = memory.lse_of_output(op.buffer);
  const int64_t lse_rows = is_home ? memory.rows : target.tokens;
  const int64_t heads = out.heads.count();
  for_row_runs(memory, op, {&op.state, 1}, [&](int64_t batch, int64_t first, int64_t run) {
    const int64_t rows = op.q_end - op.q_begin;
    cpu::AttendShape shape = shape_of(op, {first, first + 1});
    for (int64_t head = first; head < first + run / rows; ++head) {
      const int64_t at = head - out.heads.begin;
      const int64_t element = ((op.q_at * problem.batch + batch) * heads + at) * out.dim;
      cpu::finalize(shape, state_view(memory, op, op.state, batch, head),
                    {out.data + element * size_bytes(problem.dtype),
                     problem.batch * heads * out.dim, out.dim},
                    lse + (batch * heads + at) * lse_rows + op.q_at);
    }
  });
}

void LaneRunner::copy(const PreparedOp& prepared) {
  const Op& op = *prepared.op;
  const RankMemory& memory = *context_.memory;
  if (!memory.has_attention) {
    std::memcpy(memory.home.v.data(), memory.home.k.data(), static_cast<size_t>(op.bytes));
    return;
  }
  const Problem& problem = memory.problem;
  const HeadRange heads =
      heads_in(problem, op.payload, query_heads(problem, op.head_begin, op.head_end));
  const int64_t element = element_bytes(problem, op.payload);
  for (int part = 0; part < tensors_of(op.payload); ++part) {
    const TensorView from = memory.tensor(op.payload, part, op.source_buffer);
    const TensorView to = memory.tensor(op.payload, part, op.buffer);
    const Bytes bytes = heads.count() * from.dim * element;
    const auto place = [&](const TensorView& view, int64_t row) {
      const int64_t head = row * view.heads.count() + heads.begin - view.heads.begin;
      return view.data + head * view.dim * element;
    };
    for (const RowRun& run : prepared.row_runs) {
      for (int64_t i = 0; i < run.count * problem.batch; ++i) {
        std::memcpy(place(to, run.target * problem.batch + i),
                    place(from, run.source * problem.batch + i), static_cast<size_t>(bytes));
      }
    }
  }
}

}  // namespace ring
