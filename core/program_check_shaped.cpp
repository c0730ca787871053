// Shaped buffers and packed states: races, and whether what is read is what was written.
#include <fmt/format.h>

#include "core/payload.h"
#include "core/program_check_parts.h"

namespace ring::check {
namespace {

struct Place {
  bool is_state = false;
  int32_t index = 0;
  auto operator<=>(const Place&) const = default;
};

/// Rows of a place that an op touches, and which tokens they should be.
struct Access {
  Place place;
  bool writes = false;
  Payload payload = Payload::kKeyValue;
  HeadRange heads;
  std::vector<int64_t> rows, positions;
};

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

class ShapedChecker {
 public:
  ShapedChecker(const RingProgram& program, int rank, std::vector<Fault>& faults)
      : program_(program),
        ops_(program.rank_programs[static_cast<size_t>(rank)]),
        rank_(rank),
        order_(ops_, program.lanes),
        faults_(faults) {
    for (int32_t i = ops_.storage.buffers; i < ops_.storage.all_buffers(); ++i) {
      const BufferShape& shape = buffer_shape(i);
      if (shape.filled_with < 0) continue;
      const TokenRanges& tokens = program_.tokens_of(shape.filled_with);
      const std::vector<int64_t> all = positions_of(tokens, 0, token_count(tokens));
      Contents& contents = contents_[{false, i}];
      contents.rows.resize(all.size());
      for (size_t row = 0; row < all.size(); ++row) contents.rows[row] = {all[row], -1};
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
  struct Row {
    int64_t position = -1;
    int64_t writer = -1;
  };
  struct Reader {
    size_t op;
    int64_t first, last;
  };
  struct Contents {
    std::vector<Row> rows;
    std::vector<Reader> readers;
  };

  const BufferShape& buffer_shape(int32_t buffer) const {
    return ops_.storage.shaped_buffers[static_cast<size_t>(buffer - ops_.storage.buffers)];
  }
  const StateShape& state_shape(int32_t state) const {
    return ops_.storage.shaped_states[static_cast<size_t>(state - ops_.storage.states)];
  }
  bool is_shaped_buffer(int32_t buffer) const { return buffer >= ops_.storage.buffers; }
  bool is_shaped_state(int32_t state) const { return state >= ops_.storage.states; }
  HeadRange heads_of(const Op& op) const {
    return query_heads(program_.problem, op.head_begin, op.head_end);
  }

  void add(FaultKind kind, size_t op, std::string_view reason, int64_t other = -1) {
    const OpId id{rank_, static_cast<int64_t>(op)};
    std::string text = fmt::format("{} {}", describe(program_, id), reason);
    std::vector<OpId> ids{id};
    if (other >= 0) {
      ids.push_back({rank_, other});
      text += " " + describe(program_, ids.back());
    }
    faults_.push_back({kind, std::move(text), std::move(ids)});
  }

  void visit(const Op& op, size_t i) {
    switch (op.kind) {
      case OpKind::kAttend:
        if (is_shaped_buffer(op.buffer)) keys(op, i, false);
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
        if (op.payload != Payload::kPartial && is_shaped_buffer(op.buffer)) {
          rows(op, i, op.buffer, op.q_at, -1, Payload::kOutput, true);
        }
        break;
      case OpKind::kCopy:
        if (is_shaped_buffer(op.source_buffer)) {
          rows(op, i, op.source_buffer, op.buffer_begin, op.source_order, op.payload, false);
        }
        if (is_shaped_buffer(op.buffer)) {
          rows(op, i, op.buffer, op.q_at, op.target_order, op.payload, true);
        }
        break;
      case OpKind::kCompute:
      case OpKind::kBackward:
      case OpKind::kDelta:
      case OpKind::kAdd:
        break;
    }
  }

  void transfer(const Op& op, size_t i) {
    const bool writes = op.kind == OpKind::kReceive;
    if (op.payload != Payload::kKeyValue && !is_row_payload(op.payload)) return;
    if (op.payload == Payload::kPartial) {
      state(op, i, op.state, !writes, writes);
    } else if (!is_shaped_buffer(op.buffer)) {
      if (op.payload != Payload::kKeyValue && op.kind == OpKind::kSend) home_rows(op, i);
    } else if (op.payload == Payload::kKeyValue && op.kv_shard >= 0) {
      keys(op, i, writes);
    } else {
      rows(op, i, op.buffer, op.buffer_begin, -1, op.payload, writes);
    }
  }

  void query_rows_of_attend(const Op& op, size_t i) {
    if (is_shaped_buffer(op.q_buffer)) {
      rows(op, i, op.q_buffer, op.q_at, -1, Payload::kQuery, false);
    } else if (op.q_buffer != kHomeBuffer || op.q_shard != rank_ || op.q_at != op.q_begin) {
      add(FaultKind::kWrongContents, i, "reads queries that are not in the rank's own shard");
    }
  }

  void home_rows(const Op& op, size_t i) {
    if (op.q_shard == rank_ && op.buffer_begin == op.q_begin) return;
    add(FaultKind::kWrongContents, i, "sends rows that are not in the rank's own shard");
  }

  void keys(const Op& op, size_t i, bool writes) {
    Access access{{false, op.buffer}, writes, Payload::kKeyValue, heads_of(op), {}, {}};
    access.positions = positions_of(program_.tokens_of(op.kv_shard), op.kv_begin, op.kv_end);
    access.rows = rows_from(op.buffer_begin, access.positions.size());
    check_shape(access, buffer_shape(op.buffer), i);
    apply(access, i);
  }

  void rows(const Op& op, size_t i, int32_t buffer, int64_t at, int32_t order, Payload payload,
            bool writes) {
    Access access{{false, buffer}, writes, payload, heads_of(op), {}, {}};
    access.positions = positions_of(program_.tokens_of(op.q_shard), op.q_begin, op.q_end);
    access.rows = rows_from(at, access.positions.size());
    if (order >= 0) {
      for (size_t k = 0; k < access.rows.size(); ++k)
        access.rows[k] = index_of(program_.tokens_of(order), access.positions[k]);
    }
    check_shape(access, buffer_shape(buffer), i);
    apply(access, i);
  }

  /// `reads`: the state must hold these rows already. `writes` says whether it changes.
  void state(const Op& op, size_t i, int32_t index, bool reads, bool writes = true) {
    Access access{{true, index}, false, Payload::kPartial, heads_of(op), {}, {}};
    access.positions = positions_of(program_.tokens_of(op.q_shard), op.q_begin, op.q_end);
    access.rows = rows_from(0, access.positions.size());
    const StateShape& shape = state_shape(index);
    if (op.q_end - op.q_begin > shape.rows || access.heads.begin < shape.head_begin ||
        access.heads.end > shape.head_end) {
      add(FaultKind::kBadOp, i, "names rows or heads that its state has no room for");
      return;
    }
    if (reads) apply(access, i);
    if (!writes) return;
    access.writes = true;
    apply(access, i);
  }

  void check_shape(const Access& access, const BufferShape& shape, size_t i) {
    const bool fits = access.payload == shape.payload && access.heads.begin >= shape.head_begin &&
                      access.heads.end <= shape.head_end;
    if (!fits) add(FaultKind::kBadOp, i, "does not fit the kind or heads of its buffer");
    for (const int64_t row : access.rows) {
      if (row >= 0 && row < shape.tokens) continue;
      add(FaultKind::kBadOp, i, "names rows that its buffer has no room for");
      return;
    }
  }

  void apply(const Access& access, size_t i) {
    Contents& contents = contents_[access.place];
    const auto needed = *std::max_element(access.rows.begin(), access.rows.end()) + 1;
    if (static_cast<int64_t>(contents.rows.size()) < needed)
      contents.rows.resize(static_cast<size_t>(needed));
    if (access.writes) {
      write(contents, access, i);
    } else {
      read(contents, access, i);
    }
  }

  void read(Contents& contents, const Access& access, size_t i) {
    int64_t last_writer = -2;
    for (size_t k = 0; k < access.rows.size(); ++k) {
      const Row& row = contents.rows[static_cast<size_t>(std::max<int64_t>(access.rows[k], 0))];
      if (row.position != access.positions[k]) {
        add(FaultKind::kWrongContents, i,
            fmt::format("reads token {} where {}", access.positions[k],
                        row.position < 0 ? std::string("nothing was written")
                                         : fmt::format("token {} lies", row.position)));
        return;
      }
      if (row.writer == last_writer || row.writer < 0) continue;
      last_writer = row.writer;
      if (row.writer != static_cast<int64_t>(i) && !order_.is_before(op_at(row.writer), i)) {
        add(FaultKind::kBufferRace, i, "does not wait for", row.writer);
        return;
      }
    }
    const auto [first, last] = std::minmax_element(access.rows.begin(), access.rows.end());
    contents.readers.push_back({i, *first, *last});
  }

  void write(Contents& contents, const Access& access, size_t i) {
    const auto [first, last] = std::minmax_element(access.rows.begin(), access.rows.end());
    for (const Reader& reader : contents.readers) {
      const bool overlaps = reader.first <= *last && *first <= reader.last;
      if (reader.op == i || !overlaps || order_.is_before(ops_.ops[reader.op], i)) continue;
      add(FaultKind::kBufferRace, i, "may overwrite what is still read by",
          static_cast<int64_t>(reader.op));
      return;
    }
    std::erase_if(contents.readers, [&](const Reader& reader) {
      return *first <= reader.first && reader.last <= *last;
    });
    int64_t last_writer = -1;
    for (size_t k = 0; k < access.rows.size(); ++k) {
      Row& row = contents.rows[static_cast<size_t>(std::max<int64_t>(access.rows[k], 0))];
      const int64_t writer = row.writer;
      row = {access.positions[k], static_cast<int64_t>(i)};
      if (writer == last_writer || writer < 0 || writer == static_cast<int64_t>(i)) continue;
      last_writer = writer;
      if (!order_.is_before(op_at(writer), i)) {
        add(FaultKind::kBufferRace, i, "may run together with", writer);
        return;
      }
    }
  }

  const Op& op_at(int64_t index) const { return ops_.ops[static_cast<size_t>(index)]; }

  const RingProgram& program_;
  const RankProgram& ops_;
  const int rank_;
  const Order order_;
  std::map<Place, Contents> contents_;
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
