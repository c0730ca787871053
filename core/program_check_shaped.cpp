// Shaped buffers and packed states: races, and whether what is read is what was written.
#include <algorithm>

#include "core/program_check_contents.h"

namespace ring::check {
namespace {

std::vector<int64_t> positions_of(const TokenRanges& ranges, int64_t begin, int64_t end) {
  std::vector<int64_t> positions;
  for (const AffineRange& range : slice(ranges, begin, end)) {
    for (int64_t i = 0; i < range.count; ++i) positions.push_back(range.position(i));
  }
  return positions;
}

std::vector<int64_t> rows_from(int64_t at, size_t count) {
  std::vector<int64_t> rows(count);
  for (size_t i = 0; i < count; ++i) rows[i] = at + static_cast<int64_t>(i);
  return rows;
}

/// The tensors of a query side.
constexpr int kQueryPart = 0, kOutputGradientPart = 1, kStatisticsPart = 2;

/// What an op does with rows that lie somewhere.
enum class Use { kRead, kWrite, kUpdate };

/// Rows of a shard or group.
struct Rows {
  int32_t shard = 0;
  int64_t begin = 0, end = 0;
};

class ShapedChecker {
 public:
  ShapedChecker(const RingProgram& program, int rank, std::vector<Fault>& faults)
      : program_(program),
        ops_(program.rank_programs[static_cast<size_t>(rank)]),
        rank_(rank),
        contents_(program, rank, faults),
        faults_(faults) {
    for (int32_t i = ops_.storage.buffers; i < ops_.storage.all_buffers(); ++i) {
      const BufferShape& shape = buffer_shape(i);
      if (shape.filled_with < 0 || is_gradient(shape.payload)) continue;
      const TokenRanges& tokens = program_.tokens_of(shape.filled_with);
      contents_.fill({false, i, kQueryPart}, positions_of(tokens, 0, token_count(tokens)));
    }
  }

  void check() {
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const size_t faults_before = faults_.size();
      visit(ops_.ops[i], i);
      if (faults_.size() > faults_before + 8) return;  // One mistake shows many times.
    }
  }

 private:
  const BufferShape& buffer_shape(int32_t buffer) const {
    return ops_.storage.shaped_buffers[static_cast<size_t>(buffer - ops_.storage.buffers)];
  }
  const StateShape& state_shape(int32_t state) const {
    return ops_.storage.shaped_states[static_cast<size_t>(state - ops_.storage.states)];
  }
  /// The buffer whose memory it uses.
  int32_t memory_of(int32_t buffer) const {
    const int32_t other = buffer_shape(buffer).memory_of;
    return other < 0 ? buffer : ops_.storage.buffers + other;
  }
  bool is_shaped(Payload payload, int32_t buffer) const {
    return is_shaped_buffer(ops_.storage, payload, buffer);
  }
  bool is_shaped_state(int32_t state) const { return state >= ops_.storage.states; }
  HeadRange heads_of(const Op& op) const {
    return query_heads(program_.problem, op.head_begin, op.head_end);
  }
  static Rows queries(const Op& op) { return {op.q_shard, op.q_begin, op.q_end}; }
  static Rows keys(const Op& op) { return {op.kv_shard, op.kv_begin, op.kv_end}; }
  /// A copy names rows, whatever it moves.
  static Rows rows_of(const Op& op) {
    const bool is_of_keys =
        op.payload == Payload::kKeyValue || op.payload == Payload::kKeyGradients;
    return is_of_keys && op.kind != OpKind::kCopy ? keys(op) : queries(op);
  }

  void visit(const Op& op, size_t i) {
    switch (op.kind) {
      case OpKind::kAttend:
        touch(op, i, Payload::kKeyValue, op.buffer, op.buffer_begin, keys(op), Use::kRead);
        query_rows_of_attend(op, i);
        if (is_shaped_state(op.state)) state(op, i, op.state, !op.starts_state);
        break;
      case OpKind::kSend:
      case OpKind::kReceive:
        transfer(op, i);
        break;
      case OpKind::kMerge:
        if (is_shaped_state(op.source_state)) state(op, i, op.source_state, true, false);
        if (is_shaped_state(op.state)) state(op, i, op.state, !op.starts_state);
        break;
      case OpKind::kFinalize:
        if (is_shaped_state(op.state)) {
          state(op, i, op.state, !op.starts_state, op.payload == Payload::kPartial);
        }
        if (op.payload != Payload::kPartial)
          touch(op, i, Payload::kOutput, op.buffer, op.q_at, queries(op), Use::kWrite);
        break;
      case OpKind::kCopy:
        touch(op, i, op.payload, op.source_buffer, op.buffer_begin, rows_of(op), Use::kRead,
              op.source_order);
        touch(op, i, op.payload, op.buffer, op.q_at, rows_of(op), Use::kWrite, op.target_order);
        break;
      case OpKind::kAdd:
        touch(op, i, op.payload, op.source_state, op.q_at, rows_of(op), Use::kRead,
              op.source_order);
        touch(op, i, op.payload, op.state, op.buffer_begin, rows_of(op), Use::kUpdate,
              op.target_order);
        break;
      case OpKind::kDelta:
        delta(op, i);
        break;
      case OpKind::kBackward:
        backward(op, i);
        break;
      case OpKind::kCompute:
        break;
    }
  }

  void transfer(const Op& op, size_t i) {
    const bool writes = op.kind == OpKind::kReceive;
    if (is_state(op.payload)) {
      state(op, i, op.state, !writes, writes);
    } else if (op.buffer == kHomeBuffer) {
      if (is_row_payload(op.payload) && op.kind == OpKind::kSend) home_rows(op, i);
    } else if (rows_of(op).shard >= 0) {
      touch(op, i, op.payload, op.buffer, op.buffer_begin, rows_of(op),
            writes ? Use::kWrite : Use::kRead);
    }
  }

  void query_rows_of_attend(const Op& op, size_t i) {
    if (op.q_buffer >= ops_.storage.buffers) {
      touch(op, i, Payload::kQuery, op.q_buffer, op.q_at, queries(op), Use::kRead);
    } else if (op.q_buffer != kHomeBuffer || op.q_shard != rank_ || op.q_at != op.q_begin) {
      contents_.add_fault(FaultKind::kWrongContents, i,
                          "reads queries that are not in the rank's own shard");
    }
  }

  void home_rows(const Op& op, size_t i) {
    if (op.q_shard == rank_ && op.buffer_begin == op.q_begin) return;
    contents_.add_fault(FaultKind::kWrongContents, i,
                        "sends rows that are not in the rank's own shard");
  }

  void delta(const Op& op, size_t i) {
    touch(op, i, Payload::kOutput, op.buffer, op.q_begin, queries(op), Use::kRead);
    if (is_shaped(Payload::kQuerySide, op.q_buffer)) {
      touch(op, i, Payload::kOutputGradient, op.q_buffer, op.q_begin, queries(op), Use::kRead);
      part(op, i, op.q_buffer, kStatisticsPart, op.q_begin, queries(op), Use::kWrite);
    }
    if (!op.starts_state) return;
    touch(op, i, Payload::kKeyGradients, op.state, op.q_begin, queries(op), Use::kWrite);
    touch(op, i, Payload::kQueryGradients, op.source_state, op.q_begin, queries(op), Use::kWrite);
  }

  void backward(const Op& op, size_t i) {
    const bool keys_move = op.payload == Payload::kKeyValue;
    const Rows moving = keys_move ? keys(op) : queries(op);
    const Rows staying = keys_move ? queries(op) : keys(op);
    const Payload stays = keys_move ? Payload::kQuerySide : Payload::kKeyValue;
    const Use use = op.starts_state ? Use::kWrite : Use::kUpdate;
    touch(op, i, op.payload, op.buffer, op.buffer_begin, moving, Use::kRead);
    touch(op, i, stays, op.q_buffer, staying.begin, staying, Use::kRead);
    const auto gradients = [](Payload side) {
      return side == Payload::kKeyValue ? Payload::kKeyGradients : Payload::kQueryGradients;
    };
    touch(op, i, gradients(op.payload), op.state, op.buffer_begin, moving, use);
    touch(op, i, gradients(stays), op.source_state, staying.begin, staying, Use::kUpdate);
  }

  /// Nothing where the buffer is no shaped one.
  void touch(const Op& op, size_t i, Payload payload, int32_t buffer, int64_t at, const Rows& rows,
             Use use, int32_t order = -1) {
    if (!is_shaped(payload, buffer)) return;
    const bool is_side = buffer_shape(buffer).payload == Payload::kQuerySide;
    if (is_side && payload == Payload::kQuerySide) {
      for (const int tensor : {kQueryPart, kOutputGradientPart, kStatisticsPart})
        part(op, i, buffer, tensor, at, rows, use, order);
      return;
    }
    const bool is_part =
        is_side && (payload == Payload::kQuery || payload == Payload::kOutputGradient);
    if (!is_part && payload != buffer_shape(buffer).payload) {
      contents_.add_fault(FaultKind::kBadOp, i, "does not fit the kind of its buffer");
      return;
    }
    const bool is_second = is_side && payload == Payload::kOutputGradient;
    part(op, i, buffer, is_second ? kOutputGradientPart : kQueryPart, at, rows, use, order);
  }

  void part(const Op& op, size_t i, int32_t buffer, int tensor, int64_t at, const Rows& rows,
            Use use, int32_t order = -1) {
    Access access{{false, memory_of(buffer), tensor}, false, heads_of(op), {}, {}, buffer};
    access.positions = positions_of(program_.tokens_of(rows.shard), rows.begin, rows.end);
    access.rows = rows_from(at, access.positions.size());
    if (order >= 0) {
      for (size_t k = 0; k < access.rows.size(); ++k)
        access.rows[k] = index_of(program_.tokens_of(order), access.positions[k]);
    }
    if (!fits(access, buffer_shape(buffer), i) || access.rows.empty()) return;
    if (use != Use::kWrite) contents_.apply(access, i);
    access.writes = true;
    if (use != Use::kRead) contents_.apply(access, i);
  }

  /// `reads`: the state must hold these rows already. `writes` says whether it changes.
  void state(const Op& op, size_t i, int32_t index, bool reads, bool writes = true) {
    Access access{{true, index}, false, heads_of(op), {}, {}, index};
    access.positions = positions_of(program_.tokens_of(op.q_shard), op.q_begin, op.q_end);
    access.rows = rows_from(0, access.positions.size());
    const StateShape& shape = state_shape(index);
    if (op.q_end - op.q_begin > shape.rows || access.heads.begin < shape.head_begin ||
        access.heads.end > shape.head_end) {
      contents_.add_fault(FaultKind::kBadOp, i,
                          "names rows or heads that its state has no room for");
      return;
    }
    if (reads) contents_.apply(access, i);
    if (!writes) return;
    access.writes = true;
    contents_.apply(access, i);
  }

  bool fits(const Access& access, const BufferShape& shape, size_t i) {
    const bool has_heads =
        access.heads.begin >= shape.head_begin && access.heads.end <= shape.head_end;
    if (!has_heads)
      contents_.add_fault(FaultKind::kBadOp, i, "does not fit the heads of its buffer");
    const bool has_rows =
        std::all_of(access.rows.begin(), access.rows.end(),
                    [&shape](int64_t row) { return row >= 0 && row < shape.tokens; });
    if (!has_rows)
      contents_.add_fault(FaultKind::kBadOp, i, "names rows that its buffer has no room for");
    return has_heads && has_rows;
  }

  const RingProgram& program_;
  const RankProgram& ops_;
  const int rank_;
  Contents contents_;
  std::vector<Fault>& faults_;
};

}  // namespace

void check_shaped(const RingProgram& program, std::vector<Fault>& faults) {
  if (!program.has_attention) return;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankStorage& storage = program.rank_programs[static_cast<size_t>(rank)].storage;
    if (storage.shaped_buffers.empty() && storage.shaped_states.empty()) continue;
    ShapedChecker(program, rank, faults).check();
  }
}

}  // namespace ring::check
