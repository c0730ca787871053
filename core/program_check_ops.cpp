// Single ops and messages: ops refer to what exists, and every send has its receive.
#include <fmt/format.h>

#include <map>
#include <tuple>

#include "core/program_check_parts.h"

namespace ring {
namespace check {
namespace {

void bad(const RingProgram& program, OpId id, std::string_view reason, std::vector<Fault>& faults) {
  faults.push_back({FaultKind::kBadOp, fmt::format("{}: {}", describe(program, id), reason), {id}});
}

std::string_view fault_of_transfer(const RingProgram& program, OpId id) {
  const Op& op = program.op(id);
  if (op.peer < 0 || op.peer >= program.ranks()) return "the peer does not exist";
  if (op.peer == id.rank) return "a rank does not send to itself";
  if (op.message < 0) return "the message has no number";
  if (op.bytes < 0) return "the number of bytes is negative";
  return {};
}

/// How many buffers there are for a payload.
int32_t buffers_of(const RankStorage& storage, Payload payload) {
  if (payload == Payload::kQuerySide && storage.query_buffers > 0) return storage.query_buffers;
  if (is_gradient(payload) && storage.gradient_buffers > 0) return storage.gradient_buffers;
  return storage.all_buffers();
}

std::string_view fault_of_gradient(const RankStorage& storage, const Op& op, int32_t buffer) {
  if (!is_gradient(op.payload) && op.kind != OpKind::kBackward) return {};
  if (buffer < kHomeBuffer || buffer >= buffers_of(storage, Payload::kKeyGradients))
    return "the gradient buffer does not exist";
  return {};
}

std::string_view fault_of_backward(const RingProgram& program, OpId id) {
  if (!program.has_attention) return "the program does not say which attention it belongs to";
  const Op& op = program.op(id);
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(id.rank)].storage;
  if (op.kind == OpKind::kAdd) {
    if (op.source_state == op.state) return "it adds a gradient buffer to itself";
    if (op.source_state == kHomeBuffer) return "it adds from home, where gradients end";
    const std::string_view source = fault_of_gradient(storage, op, op.source_state);
    return source.empty() ? fault_of_gradient(storage, op, op.state) : source;
  }
  if (op.kind == OpKind::kDelta) return {};
  if (op.payload != Payload::kKeyValue && op.payload != Payload::kQuerySide)
    return "neither keys nor the query side travel";
  const int32_t staying = op.payload == Payload::kKeyValue ? op.q_shard : op.kv_shard;
  if (op.q_buffer == kHomeBuffer && staying != id.rank)
    return "the side that stays is not the rank's own";
  const std::string_view of_staying = fault_of_gradient(storage, op, op.source_state);
  return of_staying.empty() ? fault_of_gradient(storage, op, op.state) : of_staying;
}

/// Of ops on query rows.
std::string_view fault_of_rows(const RingProgram& program, const Op& op) {
  if (op.q_shard < 0 || op.q_shard >= program.shards_and_groups()) {
    return "the shard of its queries does not exist";
  }
  if (op.q_begin < 0 || op.q_begin >= op.q_end ||
      op.q_end > token_count(program.tokens_of(op.q_shard))) {
    return "its queries are not in the shard";
  }
  if (op.head_begin < 0 || op.head_begin >= op.head_end || op.head_end > program.problem.heads) {
    return "its heads do not exist";
  }
  return {};
}

std::string_view fault_of_attend(const RingProgram& program, OpId id) {
  if (!program.has_attention) return {};
  const Op& op = program.op(id);
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(id.rank)].storage;
  const int shards = program.shards_and_groups();
  if (op.kv_shard < 0 || op.kv_shard >= shards) return "the shard of its keys does not exist";
  if (op.kv_begin < 0 || op.kv_begin >= op.kv_end ||
      op.kv_end > token_count(program.tokens_of(op.kv_shard))) {
    return "its keys are not in the shard";
  }
  if (op.q_buffer != kHomeBuffer && (op.q_buffer < 0 || op.q_buffer >= storage.all_buffers())) {
    return "the buffer of its queries does not exist";
  }
  const std::string_view reason = fault_of_rows(program, op);
  if (!reason.empty()) return reason;
  if (op.kind == OpKind::kBackward) return fault_of_backward(program, id);
  if (op.state < 0 || op.state >= storage.all_states()) return "its state does not exist";
  return {};
}

std::string_view fault_of_copy(const RingProgram& program, OpId id) {
  if (!program.has_attention) return {};
  const Op& op = program.op(id);
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(id.rank)].storage;
  const auto exists = [&storage](int32_t buffer) {
    return buffer >= kHomeBuffer && buffer < storage.all_buffers();
  };
  if (!exists(op.buffer) || !exists(op.source_buffer)) return "its buffers do not exist";
  const int shards = program.shards_and_groups();
  if (op.source_order >= shards || op.target_order >= shards) {
    return "a shard whose order it uses does not exist";
  }
  return fault_of_rows(program, op);
}

std::string_view fault_of_transfer_payload(const RingProgram& program, OpId id) {
  const Op& op = program.op(id);
  if (!program.has_attention || !is_row_payload(op.payload)) return {};
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(id.rank)].storage;
  if (is_state(op.payload) && (op.state < storage.states || op.state >= storage.all_states())) {
    return "it needs a packed state to hold its partial result";
  }
  return fault_of_rows(program, op);
}

std::string_view fault_of(const RingProgram& program, OpId id) {
  const Op& op = program.op(id);
  const RankStorage& storage = program.rank_programs[static_cast<size_t>(id.rank)].storage;
  if (op.lane < 0 || op.lane >= program.lanes) return "the lane does not exist";
  if (program.has_attention && op.buffer != kHomeBuffer &&
      (op.buffer < 0 || op.buffer >= buffers_of(storage, op.payload))) {
    return "the buffer does not exist";
  }
  switch (op.kind) {
    case OpKind::kSend:
    case OpKind::kReceive: {
      const std::string_view reason = fault_of_transfer(program, id);
      return reason.empty() ? fault_of_transfer_payload(program, id) : reason;
    }
    case OpKind::kAttend:
    case OpKind::kBackward:
      return fault_of_attend(program, id);
    case OpKind::kAdd:
    case OpKind::kDelta:
      return fault_of_backward(program, id);
    case OpKind::kMerge:
      if (op.source_state < 0 || op.source_state >= storage.all_states() || op.state < 0 ||
          op.state >= storage.all_states() || op.state == op.source_state) {
        return "its states do not exist or are the same";
      }
      return {};
    case OpKind::kCopy:
      return fault_of_copy(program, id);
    case OpKind::kFinalize:
      return program.has_attention && (op.state < 0 || op.state >= storage.all_states())
                 ? "its state does not exist"
                 : std::string_view{};
    case OpKind::kCompute:
      return op.fixed_ps < 0 ? "its time is negative" : std::string_view{};
  }
  return {};
}

}  // namespace

void check_ops(const RingProgram& program, std::vector<Fault>& faults) {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankProgram& ops = program.rank_programs[static_cast<size_t>(rank)];
    std::vector<int64_t> written(static_cast<size_t>(program.lanes), 0);
    for (size_t i = 0; i < ops.ops.size(); ++i) {
      const Op& op = ops.ops[i];
      const OpId id{rank, static_cast<int64_t>(i)};
      const std::string_view reason = fault_of(program, id);
      if (!reason.empty()) {
        bad(program, id, reason, faults);
        if (op.lane < 0 || op.lane >= program.lanes) continue;
      }
      for (const LanePoint& dep : ops.deps_of(op)) {
        if (dep.lane < 0 || dep.lane >= program.lanes || dep.position < 0 ||
            dep.position >= written[static_cast<size_t>(dep.lane)]) {
          bad(program, id, "it waits for an op that does not stand before it", faults);
        }
      }
      if (op.lane_position != written[static_cast<size_t>(op.lane)]++) {
        bad(program, id, "its number in the lane is out of order", faults);
      }
    }
  }
}

Match check_messages(const RingProgram& program, std::vector<Fault>& faults) {
  using Key = std::tuple<int32_t, int32_t, int64_t>;  // Source, destination, message.
  std::map<Key, OpId> sends, receives;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const auto& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const bool is_send = op.kind == OpKind::kSend;
      if (!is_send && op.kind != OpKind::kReceive) continue;
      const OpId id{rank, static_cast<int64_t>(i)};
      const Key key = is_send ? Key{rank, op.peer, op.message} : Key{op.peer, rank, op.message};
      if (!(is_send ? sends : receives).emplace(key, id).second) {
        bad(program, id, "the same message between the same ranks stands twice", faults);
      }
    }
  }
  Match match;
  for (const auto& [key, send] : sends) {
    const auto found = receives.find(key);
    if (found == receives.end()) {
      faults.push_back({FaultKind::kUnmatchedSend,
                        fmt::format("{} is never received", describe(program, send)),
                        {send}});
      continue;
    }
    const OpId receive = found->second;
    match.receive_of[send] = receive;
    match.send_of[receive] = send;
    if (program.op(send).bytes != program.op(receive).bytes) {
      faults.push_back({FaultKind::kSizeMismatch,
                        fmt::format("{} has {} bytes, but {} expects {}", describe(program, send),
                                    program.op(send).bytes, describe(program, receive),
                                    program.op(receive).bytes),
                        {send, receive}});
    }
  }
  for (const auto& [key, receive] : receives) {
    if (sends.contains(key)) continue;
    faults.push_back({FaultKind::kUnmatchedReceive,
                      fmt::format("nobody sends what {} waits for", describe(program, receive)),
                      {receive}});
  }
  return match;
}

}  // namespace check
}  // namespace ring
