#include "kernels/backward_run.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/naive.h"

namespace ring {
namespace {

void set_to_zero(float* values, int64_t count) {
  if (count > 0) std::memset(values, 0, static_cast<size_t>(count) * sizeof(float));
}

void add_values(float* to, const float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

float* floats(const TensorView& view) { return reinterpret_cast<float*>(view.data); }

/// Where a backward op finds its operands.
struct Operands {
  QuerySideView side;
  TensorView k, v, dq, dk, dv;
  int64_t q_at, kv_at;  ///< First row and key there, and in their gradients.
};

Operands operands_of(const RankMemory& memory, const Op& op) {
  const bool keys_move = op.payload == Payload::kKeyValue;
  const int32_t rows = keys_move ? op.q_buffer : op.buffer;
  const int32_t keys = keys_move ? op.buffer : op.q_buffer;
  const int32_t row_sums = keys_move ? op.source_state : op.state;
  const int32_t key_sums = keys_move ? op.state : op.source_state;
  return {.side = memory.query_side(rows),
          .k = memory.tensor(Payload::kKeyValue, 0, keys),
          .v = memory.tensor(Payload::kKeyValue, 1, keys),
          .dq = memory.tensor(Payload::kQueryGradients, 0, row_sums),
          .dk = memory.tensor(Payload::kKeyGradients, 0, key_sums),
          .dv = memory.tensor(Payload::kKeyGradients, 1, key_sums),
          .q_at = keys_move ? op.q_begin : op.buffer_begin,
          .kv_at = keys_move ? op.buffer_begin : op.kv_begin};
}

/// All heads of `count` tokens from `at` on, to zero.
void reset_tokens(const TensorView& view, int64_t batch, int64_t at, int64_t count) {
  const int64_t token = batch * view.heads.count() * view.dim;
  set_to_zero(floats(view) + at * token, count * token);
}

/// Sets the gradients of the travelling tokens to zero.
void reset_sums(const Operands& at, const Op& op, int64_t batch) {
  if (op.payload == Payload::kKeyValue) {
    reset_tokens(at.dk, batch, at.kv_at, op.kv_end - op.kv_begin);
    reset_tokens(at.dv, batch, at.kv_at, op.kv_end - op.kv_begin);
  } else {
    reset_tokens(at.dq, batch, at.q_at, op.q_end - op.q_begin);
  }
}

/// Operands of some heads and one batch element as the kernels take them.
struct KernelViews {
  const Problem& problem;
  int64_t of_batch;

  cpu::ConstView in(const TensorView& view, int64_t at, int64_t head) const {
    return {view.data + view.at(at, of_batch, problem.batch, head) * size_bytes(problem.dtype),
            problem.batch * view.heads.count() * view.dim, view.dim};
  }
  float* out(const TensorView& view, int64_t at, int64_t head) const {
    return floats(view) + view.at(at, of_batch, problem.batch, head);
  }
  cpu::Strides strides(const TensorView& view) const {
    return {problem.batch * view.heads.count() * view.dim, view.dim};
  }
  /// (lse, delta) of the first row; rows and heads are stats_strides() apart.
  float* stats(const QuerySideView& side, int64_t at, int64_t head) const {
    const HeadRange heads = side.q.heads;
    return side.stats + ((at * problem.batch + of_batch) * heads.count() + head - heads.begin) * 2;
  }
  cpu::Strides stats_strides(const QuerySideView& side) const {
    return {2 * problem.batch * side.q.heads.count(), 2};
  }
};

cpu::BackwardInput input_of(const Operands& at, const KernelViews& views, HeadRange heads,
                            HeadRange kv_heads) {
  const float* const stats = views.stats(at.side, at.q_at, heads.begin);
  return {.q = views.in(at.side.q, at.q_at, heads.begin),
          .k = views.in(at.k, at.kv_at, kv_heads.begin),
          .v = views.in(at.v, at.kv_at, kv_heads.begin),
          .d_out = views.in(at.side.d_out, at.q_at, heads.begin),
          .lse = stats,
          .delta = stats + 1,
          .stats = views.stats_strides(at.side)};
}

cpu::BackwardOutput output_of(const Operands& at, const KernelViews& views, HeadRange heads,
                              HeadRange kv_heads) {
  return {.dq = views.out(at.dq, at.q_at, heads.begin),
          .dk = views.out(at.dk, at.kv_at, kv_heads.begin),
          .dv = views.out(at.dv, at.kv_at, kv_heads.begin),
          .q = views.strides(at.dq),
          .k = views.strides(at.dk),
          .v = views.strides(at.dv)};
}

cpu::AttendShape shape_of(const Problem& problem, const Op& op, HeadRange heads) {
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

}  // namespace

cpu::AttendShape backward_shape(const Problem& problem, const Op& op) {
  return shape_of(problem, op, query_heads(problem, op.head_begin, op.head_end));
}

void run_backward(RankMemory& memory, const Op& op, const cpu::KeySpan* spans,
                  cpu::Workspace& workspace, float* scores) {
  const Problem& problem = memory.problem;
  const Operands at = operands_of(memory, op);
  if (op.starts_state) reset_sums(at, op, problem.batch);
  if (op.visible_pairs == 0) return;
  const HeadRange heads = query_heads(problem, op.head_begin, op.head_end);
  const bool is_naive = op.method == AttendMethod::kNaive;
  // A call takes the heads of the op, which are whole groups or a part of one; or a single head.
  const int64_t step = is_naive ? 1 : heads.count();
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const KernelViews views{problem, batch};
    for (int64_t head = heads.begin; head < heads.end; head += step) {
      const HeadRange some{head, head + step};
      const HeadRange kv_heads = kv_heads_of(problem, some);
      const cpu::AttendShape shape = shape_of(problem, op, some);
      const cpu::BackwardInput input = input_of(at, views, some, kv_heads);
      const cpu::BackwardOutput output = output_of(at, views, some, kv_heads);
      if (is_naive) {
        cpu::attend_backward_naively(shape, input, spans, output, scores);
      } else {
        cpu::attend_backward(shape, input, spans, output, workspace);
      }
    }
  }
}

void run_delta(RankMemory& memory, const Op& op) {
  const Problem& problem = memory.problem;
  const int64_t rows = op.q_end - op.q_begin;
  if (op.starts_state) {
    const bool is_home = op.state == kHomeBuffer;
    const TensorView dk = memory.tensor(Payload::kKeyGradients, 0, op.state);
    const TensorView dv = memory.tensor(Payload::kKeyGradients, 1, op.state);
    const TensorView dq = memory.tensor(Payload::kQueryGradients, 0, op.source_state);
    const int64_t keys = is_home ? memory.rows : rows;
    reset_tokens(dk, problem.batch, 0, keys);
    reset_tokens(dv, problem.batch, 0, keys);
    reset_tokens(dq, problem.batch, 0, rows);
  }
  const QuerySideView side = memory.query_side(op.q_buffer);
  const TensorView out = memory.tensor(Payload::kOutput, 0, op.buffer);
  const int64_t lse_rows = op.buffer == kHomeBuffer ? memory.rows : memory.buffer(op.buffer).tokens;
  const HeadRange heads = out.heads;
  cpu::AttendShape shape = shape_of(problem, op, heads);
  shape.kv_rows = 0;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const KernelViews views{problem, batch};
    float* const stats = views.stats(side, 0, heads.begin);
    const cpu::Strides strides = views.stats_strides(side);
    cpu::compute_delta(shape, views.in(out, 0, heads.begin), views.in(side.d_out, 0, heads.begin),
                       stats + 1, strides);
    for (int64_t head = 0; head < heads.count(); ++head) {
      const float* const lse =
          memory.lse_of_output(op.buffer) + (batch * heads.count() + head) * lse_rows;
      for (int64_t row = 0; row < rows; ++row) stats[row * strides.token + 2 * head] = lse[row];
    }
  }
}

void run_add(RankMemory& memory, const Op& op, std::span<const RowRun> runs) {
  const Problem& problem = memory.problem;
  const HeadRange heads =
      heads_in(problem, op.payload, query_heads(problem, op.head_begin, op.head_end));
  for (int part = 0; part < tensors_of(op.payload); ++part) {
    const TensorView from = memory.tensor(op.payload, part, op.source_state);
    const TensorView to = memory.tensor(op.payload, part, op.state);
    const bool is_whole = from.heads == heads && to.heads == heads;
    const int64_t values = heads.count() * from.dim;
    for (const RowRun& run : runs) {
      const int64_t pieces = is_whole ? 1 : run.count * problem.batch;
      const int64_t length = is_whole ? run.count * problem.batch * values : values;
      for (int64_t i = 0; i < pieces; ++i) {
        const int64_t row = i / problem.batch, batch = i % problem.batch;
        add_values(floats(to) + to.at(run.target + row, batch, problem.batch, heads.begin),
                   floats(from) + from.at(run.source + row, batch, problem.batch, heads.begin),
                   length);
      }
    }
  }
}

}  // namespace ring
