// OpPool: the ops of all ranks that are fetched and not yet done, one cache line each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/ring_program.h"

namespace ring {

/// A lane point in one word: 16 bits of lane, 48 bits of position.
struct PackedPoint {
  uint64_t bits = 0;
  static PackedPoint of(const LanePoint& point) {
    return {(static_cast<uint64_t>(point.position) << 16) | static_cast<uint64_t>(point.lane)};
  }
  uint32_t lane() const { return static_cast<uint32_t>(bits & 0xffff); }
  int64_t position() const { return static_cast<int64_t>(bits >> 16); }
};

/// What the simulator needs of an op while it is pending.
struct alignas(64) PendingOp {
  static constexpr uint32_t kOwnDeps = 3;

  double work;  ///< Picoseconds alone; bytes of a send over links. Noise included.
  int64_t message;
  Bytes bytes;
  std::array<PackedPoint, kOwnDeps> own_deps;  ///< Unused when there are more.
  int32_t peer;
  uint32_t next;       ///< Of the same lane.
  uint32_t more_deps;  ///< Number of the list that has all of them.
  uint32_t dep_count : 27;
  uint32_t kind_bits : 4;
  uint32_t is_eager : 1;

  OpKind kind() const { return static_cast<OpKind>(kind_bits); }
};

/// What only a timeline needs.
struct OpDetails {
  int64_t index = 0;  ///< Into the ops of the rank.
  Flops flops = 0;
  int32_t step = 0;
  int32_t kv_shard = -1;
  Picoseconds posted_ps = 0, start_ps = 0;
};

class OpPool {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  explicit OpPool(bool keeps_details) : keeps_details_(keeps_details) {}

  PendingOp& operator[](uint32_t slot) { return ops_[slot]; }
  const PendingOp& operator[](uint32_t slot) const { return ops_[slot]; }
  /// Only when details are kept.
  OpDetails& details(uint32_t slot) { return details_[slot]; }
  const OpDetails& details(uint32_t slot) const { return details_[slot]; }

  std::span<const PackedPoint> deps(const PendingOp& op) const {
    const PackedPoint* const first =
        op.dep_count <= PendingOp::kOwnDeps ? op.own_deps.data() : lists_[op.more_deps].data();
    return {first, op.dep_count};
  }

  /// Invalidates references into the pool.
  uint32_t take(const Op& op, double work, std::span<const LanePoint> deps) {
    const uint32_t slot = free_slot();
    PendingOp& pending = ops_[slot];
    pending.work = work;
    pending.message = op.message;
    pending.bytes = op.bytes;
    pending.peer = op.peer;
    pending.next = kNone;
    pending.dep_count = static_cast<uint32_t>(deps.size()) & 0x7ffffff;
    pending.kind_bits = static_cast<uint32_t>(op.kind) & 15;
    pending.is_eager = op.protocol == Protocol::kEager;
    if (deps.size() <= PendingOp::kOwnDeps) {
      for (size_t i = 0; i < deps.size(); ++i) pending.own_deps[i] = PackedPoint::of(deps[i]);
    } else {
      pending.more_deps = keep_list(deps);
    }
    return slot;
  }

  void give_back(uint32_t slot) {
    if (ops_[slot].dep_count > PendingOp::kOwnDeps) free_lists_.push_back(ops_[slot].more_deps);
    free_.push_back(slot);
  }

 private:
  uint32_t free_slot() {
    if (free_.empty()) {
      ops_.emplace_back();
      if (keeps_details_) details_.emplace_back();
      return static_cast<uint32_t>(ops_.size()) - 1;
    }
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  uint32_t keep_list(std::span<const LanePoint> deps) {
    uint32_t number = static_cast<uint32_t>(lists_.size());
    if (free_lists_.empty()) {
      lists_.emplace_back();
    } else {
      number = free_lists_.back();
      free_lists_.pop_back();
    }
    std::vector<PackedPoint>& list = lists_[number];
    list.clear();
    for (const LanePoint& dep : deps) list.push_back(PackedPoint::of(dep));
    return number;
  }

  bool keeps_details_;
  std::vector<PendingOp> ops_;
  std::vector<OpDetails> details_;
  std::vector<uint32_t> free_;
  std::vector<std::vector<PackedPoint>> lists_;
  std::vector<uint32_t> free_lists_;
};

}  // namespace ring
