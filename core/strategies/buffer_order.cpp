#include "core/strategies/buffer_order.h"

namespace ring {

std::vector<BufferUse> buffer_uses(const Op& op) {
  std::vector<BufferUse> all;
  switch (op.kind) {
    case OpKind::kAttend:
      all = {{op.buffer, false}, {op.q_buffer, false}};
      break;
    case OpKind::kSend:
      all = {{op.buffer, false}};
      break;
    case OpKind::kReceive:
      all = {{op.buffer, true}};
      break;
    case OpKind::kFinalize:
      all = {{op.buffer, true}};
      break;
    case OpKind::kCopy:
      all = {{op.source_buffer, false}, {op.buffer, true}};
      break;
    case OpKind::kAdd:
      all = {{op.source_state, false}, {op.state, true}};
      break;
    case OpKind::kDelta:
      all = {{op.buffer, false}, {op.q_buffer, false}, {op.q_buffer, true}};
      if (op.starts_state) all.insert(all.end(), {{op.state, true}, {op.source_state, true}});
      break;
    case OpKind::kBackward:
      all = {{op.buffer, false}, {op.q_buffer, false}, {op.state, true}, {op.source_state, true}};
      break;
    case OpKind::kMerge:
    case OpKind::kCompute:
      break;
  }
  std::erase_if(all, [](const BufferUse& use) { return use.buffer == kHomeBuffer; });
  return all;
}

void BufferOrder::wait(const Op& op, Readers& deps) const {
  for (const BufferUse& use : buffer_uses(op)) {
    const auto& others = use.writes ? readers_ : writers_;
    const auto found = others.find(use.buffer);
    if (found == others.end()) continue;
    for (const auto& [lane, position] : found->second) deps.push_back({lane, position});
  }
}

void BufferOrder::done(const Op& op, LanePoint point) {
  for (const BufferUse& use : buffer_uses(op))
    (use.writes ? writers_ : readers_)[use.buffer][point.lane] = point.position;
}

}  // namespace ring
