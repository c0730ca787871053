#include "core/strategies/group_buffers.h"

#include <algorithm>

#include "core/strategies/kv_routing.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

GroupBuffers::GroupBuffers(const KvPlan& plan, const KvRouting& routing, int rank)
    : slots_(std::min(plan.tuning.pipeline_depth, plan.groups())),
      gradient_depth_(RankTracks::gradient_depth(plan.tuning)) {
  for (int group = 0; group < plan.groups(); ++group) heads_.push_back(plan.heads(group));
  bool is_sent = false;
  std::vector<Hop> to;
  Hop from;
  for (int64_t m = 0; m < plan.messages.rounds(); ++m) {
    to.clear();
    if (m < plan.messages.messages_of(rank)) routing.passes_on(rank, m, rank, -1, to);
    is_sent = is_sent || !to.empty();
    for (int step = 0; step < routing.steps(); ++step) {
      const int shard = routing.shard_at(rank, m, step);
      if (m >= plan.messages.messages_of(shard) || !routing.arrives(shard, m, rank, step, from))
        continue;
      const KeySlice part = plan.messages.message(shard, m);
      arrivals_.push_back(part.end - part.begin);
    }
  }
  if (is_sent && plan.groups() > 1) packed_tokens_ = plan.partition.shard_tokens(rank);
  if (has_backward(plan.problem.pass) && plan.ranks() > 1)
    gradient_tokens_ = plan.messages.message_tokens();
  first_received_ = packs() ? plan.groups() : 0;
}

/// A buffer whose memory groups take in turn, of which a group has `per_group`.
void GroupBuffers::add(Payload payload, Tokens tokens, int group, int32_t per_group, int slots,
                       std::vector<BufferShape>& shapes) const {
  const HeadRange heads = heads_[static_cast<size_t>(group)];
  BufferShape shape{payload, tokens, static_cast<int32_t>(heads.begin),
                    static_cast<int32_t>(heads.end)};
  if (group >= slots)
    shape.memory_of = static_cast<int32_t>(shapes.size()) - (group - group % slots) * per_group;
  shapes.push_back(shape);
}

std::vector<BufferShape> GroupBuffers::shapes() const {
  std::vector<BufferShape> shapes;
  const int groups = static_cast<int>(heads_.size());
  for (int group = 0; group < groups && packs(); ++group)
    add(Payload::kKeyValue, packed_tokens_, group, 1, slots_, shapes);
  for (int group = 0; group < groups; ++group) {
    for (const Tokens tokens : arrivals_)
      add(Payload::kKeyValue, tokens, group, arrivals(), slots_, shapes);
  }
  for (int group = 0; group < groups && gradient_tokens_ > 0; ++group) {
    for (int32_t i = 0; i < 2 * gradient_depth_; ++i)
      add(Payload::kKeyGradients, gradient_tokens_, group, 2 * gradient_depth_, 1, shapes);
  }
  return shapes;
}

}  // namespace ring
