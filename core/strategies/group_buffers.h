// GroupBuffers: the buffers of one rank whose KV heads travel in groups, one group after the other.
#pragma once

#include <vector>

#include "core/payload.h"
#include "core/ring_program.h"

namespace ring {

struct KvPlan;
class KvRouting;

/// Of each group of heads: the own keys packed for sending, where a group is not all heads; the
/// keys received from others, a buffer a message; and, with a backward pass, gradients received and
/// summed. Groups `slots()` apart share memory: that is how many are gathered at once.
class GroupBuffers {
 public:
  /// The numbers of buffers are those of a rank without uniform ones.
  GroupBuffers(const KvPlan& plan, const KvRouting& routing, int rank);

  int slots() const { return slots_; }
  bool packs() const { return packed_tokens_ > 0; }
  int32_t packed(int group) const { return group; }
  /// The first of the buffers that the keys of a group are received into.
  int32_t received(int group) const { return first_received_ + group * arrivals(); }
  int32_t arrivals() const { return static_cast<int32_t>(arrivals_.size()); }
  /// The first of the gradient buffers of a group: gradient_depth() that are received, then as many
  /// in which the rank sums its own share.
  int32_t gradients(int group) const {
    return received(static_cast<int>(heads_.size())) + group * 2 * gradient_depth_;
  }
  int32_t gradient_depth() const { return gradient_depth_; }

  std::vector<BufferShape> shapes() const;

 private:
  void add(Payload payload, Tokens tokens, int group, int32_t per_group, int slots,
           std::vector<BufferShape>& shapes) const;

  std::vector<HeadRange> heads_;  ///< Of each group.
  int slots_ = 1;
  Tokens packed_tokens_ = 0;      ///< Of the own shard; 0: nothing is packed.
  std::vector<Tokens> arrivals_;  ///< Tokens of every message that is received of a group.
  Tokens gradient_tokens_ = 0;    ///< 0: without a backward pass.
  int32_t gradient_depth_ = 0;
  int32_t first_received_ = 0;
};

}  // namespace ring
