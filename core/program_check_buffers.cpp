// Buffers: nothing is overwritten while it may be read, and everybody reads what is there.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/program_check_parts.h"

namespace ring::check {
namespace {

struct BufferContents {
  const Op* written_by = nullptr;  ///< The last that wrote or added.
  std::vector<const Op*> readers;
};

/// Which set of buffers a payload lies in: keys, query side, gradients.
constexpr int kPlainSet = 0, kQuerySideSet = 1, kGradientSet = 2;
int buffer_set(Payload payload) {
  if (is_gradient(payload)) return kGradientSet;
  return payload == Payload::kQuerySide ? kQuerySideSet : kPlainSet;
}

/// Tokens of the side that a transfer or what is read is about.
struct TokenSpan {
  int32_t shard;
  int64_t begin, end;
};
TokenSpan tokens_of(const Op& op) {
  const bool is_of_keys = op.payload == Payload::kKeyValue || op.payload == Payload::kKeyGradients;
  if (is_of_keys) return {op.kv_shard, op.kv_begin, op.kv_end};
  return {op.q_shard, op.q_begin, op.q_end};
}

class RankChecker {
 public:
  RankChecker(const RingProgram& program, int rank, std::vector<Fault>& faults)
      : program_(program),
        ops_(program.rank_programs[static_cast<size_t>(rank)]),
        rank_(rank),
        order_(ops_, program.lanes),
        faults_(faults) {}

  void check() {
    for (size_t i = 0; i < ops_.ops.size(); ++i) {
      const Op& op = ops_.ops[i];
      if (program_.has_attention && is_shaped_buffer(ops_.storage, op.payload, op.buffer)) continue;
      if (op.kind == OpKind::kReceive && op.buffer != kHomeBuffer) {
        write(op, i, contents(op.payload, op.buffer));
      } else if (computes_pairs(op.kind) || op.kind == OpKind::kSend) {
        op.buffer == kHomeBuffer ? read_home(op, i) : read(op, i, contents(op.payload, op.buffer));
      }
      const bool sums_shaped =
          is_shaped_buffer(ops_.storage, Payload::kKeyGradients,
                           op.kind == OpKind::kAdd ? op.source_state : op.state);
      if (sums_shaped) continue;
      if (op.kind == OpKind::kAdd) {
        BufferContents& source = buffers_[{kGradientSet, op.source_state}];
        read(op, i, source);
      }
      const bool adds = op.kind == OpKind::kAdd || op.kind == OpKind::kBackward;
      if (adds && op.state != kHomeBuffer) {
        write(op, i, buffers_[{kGradientSet, op.state}]);
      }
    }
  }

 private:
  void add(FaultKind kind, size_t op, std::string_view reason, const Op* other = nullptr) {
    const OpId id{rank_, static_cast<int64_t>(op)};
    std::string text = fmt::format("{} {}", describe(program_, id), reason);
    std::vector<OpId> ids{id};
    if (other != nullptr) {
      ids.push_back({rank_, other - ops_.ops.data()});
      text += " " + describe(program_, ids.back());
    }
    faults_.push_back({kind, std::move(text), std::move(ids)});
  }

  BufferContents& contents(Payload payload, int32_t buffer) {
    return buffers_[{buffer_set(payload), buffer}];
  }

  void write(const Op& op, size_t i, BufferContents& contents) {
    for (const Op* reader : contents.readers) {
      if (!order_.is_before(*reader, i)) {
        add(FaultKind::kBufferRace, i, "may overwrite what is still read by", reader);
      }
    }
    if (contents.written_by != nullptr && !order_.is_before(*contents.written_by, i)) {
      add(FaultKind::kBufferRace, i, "may run together with", contents.written_by);
    }
    contents = {&op, {}};
  }

  void read(const Op& op, size_t i, BufferContents& contents) {
    if (contents.written_by == nullptr) {
      add(FaultKind::kWrongContents, i, "reads a buffer that nothing was received into");
      return;
    }
    if (!order_.is_before(*contents.written_by, i)) {
      add(FaultKind::kBufferRace, i, "does not wait for", contents.written_by);
    }
    contents.readers.push_back(&op);
    const Op& held = *contents.written_by;
    if (is_gradient(op.payload)) return;  // Whose shares these are is followed by check_gradients.
    const TokenSpan wanted = tokens_of(op), found = tokens_of(held);
    if (wanted.shard < 0 && found.shard < 0) return;  // A program without keys.
    if (op.payload != held.payload || wanted.shard != found.shard || wanted.begin < found.begin ||
        wanted.end > found.end ||
        wanted.begin - found.begin != op.buffer_begin - held.buffer_begin) {
      add(FaultKind::kWrongContents, i, "reads tokens that the buffer does not hold; it holds",
          &held);
    }
  }

  void read_home(const Op& op, size_t i) {
    const TokenSpan wanted = tokens_of(op);
    if (!program_.has_attention || wanted.shard < 0) return;
    if (op.kind == OpKind::kSend && is_row_payload(op.payload)) return;  // See shaped.
    if (wanted.shard != rank_ || op.buffer_begin != wanted.begin ||
        wanted.end > program_.partition.shard_tokens(rank_)) {
      add(FaultKind::kWrongContents, i, "reads tokens that are not in the rank's own shard");
    }
  }

  const RingProgram& program_;
  const RankProgram& ops_;
  const int rank_;
  const Order order_;
  std::map<std::pair<int, int32_t>, BufferContents> buffers_;  ///< By set and number.
  std::vector<Fault>& faults_;
};

}  // namespace

void check_buffers(const RingProgram& program, const Match& match, std::vector<Fault>& faults) {
  for (int rank = 0; rank < program.ranks(); ++rank) RankChecker(program, rank, faults).check();
  for (const auto& [send_id, receive_id] : match.receive_of) {
    const Op& send = program.op(send_id);
    const Op& receive = program.op(receive_id);
    if (send.payload == receive.payload && send.kv_shard == receive.kv_shard &&
        send.kv_begin == receive.kv_begin && send.kv_end == receive.kv_end &&
        send.q_shard == receive.q_shard && send.q_begin == receive.q_begin &&
        send.q_end == receive.q_end && send.head_begin == receive.head_begin &&
        send.head_end == receive.head_end) {
      continue;
    }
    faults.push_back({FaultKind::kWrongContents,
                      fmt::format("{} brings other tokens than {} expects",
                                  describe(program, send_id), describe(program, receive_id)),
                      {send_id, receive_id}});
  }
}

}  // namespace ring::check
