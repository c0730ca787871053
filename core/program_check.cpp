#include "core/program_check.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/program_check_parts.h"

namespace ring {

std::string_view name(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDeadlock:
      return "deadlock";
    case FaultKind::kUnmatchedSend:
      return "unmatched send";
    case FaultKind::kUnmatchedReceive:
      return "unmatched receive";
    case FaultKind::kSizeMismatch:
      return "size mismatch";
    case FaultKind::kBufferRace:
      return "buffer race";
    case FaultKind::kWrongContents:
      return "wrong contents";
    case FaultKind::kPairsMissing:
      return "pairs missing";
    case FaultKind::kPairsRepeated:
      return "pairs repeated";
    case FaultKind::kGradientsLost:
      return "gradients lost";
    case FaultKind::kGradientsRepeated:
      return "gradients repeated";
    case FaultKind::kBadOp:
      return "bad op";
  }
  return "?";
}

namespace {

std::string buffer_name(int32_t buffer) {
  return buffer == kHomeBuffer ? "its home shard" : fmt::format("buffer {}", buffer);
}

std::string gradient_name(int32_t buffer) {
  return buffer == kHomeBuffer ? "its own gradients" : fmt::format("gradient buffer {}", buffer);
}

std::string place_name(const Op& op) {
  return is_gradient(op.payload) ? gradient_name(op.buffer) : buffer_name(op.buffer);
}

}  // namespace

std::string describe(const RingProgram& program, OpId id) {
  const Op& op = program.op(id);
  std::string text = fmt::format("r{}:{} {}", id.rank, id.index, name(op.kind));
  if (op.kv_shard < 0 && op.q_shard >= 0 && op.q_end > 0 && op.kind != OpKind::kFinalize) {
    const bool names_payload = op.kind != OpKind::kMerge && op.payload != Payload::kKeyValue &&
                               op.payload != Payload::kQuerySide;
    text += fmt::format(" {} {}..{} of shard {}",
                        names_payload ? fmt::format("{} rows", name(op.payload)) : "queries",
                        op.q_begin, op.q_end, op.q_shard);
  } else if (op.kv_shard >= 0) {
    text += fmt::format(" keys {}..{} of shard {}", op.kv_begin, op.kv_end, op.kv_shard);
  } else if (op.message >= 0) {
    text += fmt::format(" message {}", op.message);
  }
  switch (op.kind) {
    case OpKind::kSend:
      return text + fmt::format(" from {} to rank {}", place_name(op), op.peer);
    case OpKind::kReceive:
      return text + fmt::format(" from rank {} into {}", op.peer, place_name(op));
    case OpKind::kAttend:
      return text + fmt::format(" in {}", buffer_name(op.buffer));
    case OpKind::kMerge:
      return text + fmt::format(" state {} into state {}", op.source_state, op.state);
    case OpKind::kBackward:
      return text + fmt::format(" against queries {}..{} of shard {}, {} in {}", op.q_begin,
                                op.q_end, op.q_shard, name(op.payload), buffer_name(op.buffer));
    case OpKind::kAdd:
      return text + fmt::format(" {} of {} to {}", name(op.payload), gradient_name(op.source_state),
                                gradient_name(op.state));
    case OpKind::kDelta:
    case OpKind::kCopy:
    case OpKind::kFinalize:
    case OpKind::kCompute:
      return text;
  }
  return text;
}

std::vector<Fault> check_program(const RingProgram& program) {
  std::vector<Fault> faults;
  check::check_ops(program, faults);
  if (!faults.empty()) return faults;  // The other checks rely on ops that refer to what exists.
  const check::Match match = check::check_messages(program, faults);
  check::check_deadlock(program, match, faults);
  check::check_buffers(program, match, faults);
  check::check_shaped(program, faults);
  check::check_pairs(program, faults);
  check::check_gradients(program, match, faults);
  return faults;
}

void require_sound(const RingProgram& program) {
  const std::vector<Fault> faults = check_program(program);
  if (faults.empty()) return;
  const Fault& first = faults.front();
  std::string hint;
  if (first.kind == FaultKind::kDeadlock) {
    hint =
        "give the rank one more receive buffer (--depth), let sends and receives run on lanes "
        "of their own, or order them so that a neighbour receives first";
  }
  const std::string more =
      faults.size() > 1 ? fmt::format(" (and {} more faults)", faults.size() - 1) : "";
  throw_usage(
      fmt::format("the program is not sound: {}: {}{}", name(first.kind), first.message, more),
      hint);
}

}  // namespace ring
