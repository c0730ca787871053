// RankTracks: lanes and buffers of one rank while the phases of its program are written.
#pragma once

#include <vector>

#include "core/ring_program.h"
#include "core/strategies/group_buffers.h"

namespace ring {

/// What must be done before a buffer is free again.
using Readers = std::vector<LanePoint>;

/// A buffer that keys of the own shard were packed in.
struct PackedKeys {
  LanePoint done;   ///< The op that packed them.
  Readers readers;  ///< Those that send them.
};

/// The lane of transfer number `count` of a track. Lane 0 computes; every track has `lanes` send
/// lanes, then `lanes` receive lanes, taken in turn.
inline int32_t track_lane(int lanes, int track, bool is_receive, int64_t count) {
  return 1 + (2 * track + (is_receive ? 1 : 0)) * lanes + static_cast<int32_t>(count % lanes);
}

/// Buffers that are taken in turn.
class BufferRing {
 public:
  /// `first` is the number of the first of `count` buffers; those of the next group of heads, which
  /// use the same memory, are `stride` further on.
  BufferRing(int32_t first, int count, int32_t stride = 0)
      : first_(first), stride_(stride), readers_(static_cast<size_t>(count)) {}

  /// The next buffer, and what has to be waited for before it is written to.
  int32_t take(int group) {
    last_ = static_cast<size_t>(taken_++ % static_cast<int64_t>(readers_.size()));
    return first_ + group * stride_ + static_cast<int32_t>(last_);
  }
  const Readers& readers() const { return readers_[last_]; }
  /// What frees the buffer that was taken last.
  void free_after(Readers readers) { readers_[last_] = std::move(readers); }

 private:
  int32_t first_, stride_;
  std::vector<Readers> readers_;
  int64_t taken_ = 0;
  size_t last_ = 0;
};

/// Lanes of tracks as track_lane() numbers them.
/// Gradients have as many tracks again as the keys, so that neither waits for the other.
class RankTracks {
 public:
  /// `groups`: the buffers of one track whose heads travel in groups; null where all travel at
  /// once.
  RankTracks(const Tuning& tuning, int tracks, bool has_gradients, const GroupBuffers* groups)
      : lanes_(tuning.lanes),
        tracks_(tracks),
        writer_(lanes_of(tuning, tracks, has_gradients)),
        sent_(static_cast<size_t>(2 * tracks), 0),
        received_(static_cast<size_t>(2 * tracks), 0) {
    groups_ = groups;
    if (groups != nullptr) {
      use(*groups);
      return;
    }
    for (int track = 0; track < tracks; ++track) {
      keys_.emplace_back(track * tuning.pipeline_depth, tuning.pipeline_depth);
      queries_.emplace_back(track * tuning.pipeline_depth, tuning.pipeline_depth);
      gradients_.emplace_back(track * gradient_depth(tuning), gradient_depth(tuning));
    }
    gradients_.emplace_back(tracks * gradient_depth(tuning), gradient_depth(tuning));
  }

  static int lanes_of(const Tuning& tuning, int tracks, bool has_gradients) {
    return 1 + 2 * tuning.lanes * tracks * (has_gradients ? 2 : 1);
  }
  /// Gradient buffers of a track, and those that are being summed up: two at least, since what
  /// comes home and what is on its way may arrive in the same step.
  static int gradient_depth(const Tuning& tuning) { return std::max(2, tuning.pipeline_depth); }
  static int gradient_buffers(const Tuning& tuning, int tracks) {
    return gradient_depth(tuning) * (tracks + 1);
  }

  OpWriter& writer() { return writer_; }
  int tracks() const { return tracks_; }
  /// Receive buffers of a track for what only is read.
  BufferRing& buffers(Payload payload, int track, int group) {
    if (!packed_.empty()) return keys_[static_cast<size_t>(group) % keys_.size()];
    return (payload == Payload::kQuerySide ? queries_ : keys_)[static_cast<size_t>(track)];
  }
  const GroupBuffers* groups() const { return groups_; }
  /// Where the own keys are sent from.
  int32_t own_buffer(int group) const {
    return groups_ != nullptr && groups_->packs() ? groups_->packed(group) : kHomeBuffer;
  }
  /// The buffer that the own keys of a group are packed in.
  PackedKeys& packed(int group) { return packed_[static_cast<size_t>(group) % packed_.size()]; }
  /// Gradient buffers that messages of a track are received into.
  BufferRing& gradients(int track) { return gradients_[static_cast<size_t>(track)]; }
  /// Gradient buffers in which the rank sums its own share.
  BufferRing& work() { return gradients_.back(); }

  /// The lane of the next send or receive of a track; gradient tracks are numbered after the
  /// others.
  int32_t send_lane(int track) {
    return track_lane(lanes_, track, false, sent_[static_cast<size_t>(track)]++);
  }
  int32_t receive_lane(int track) {
    return track_lane(lanes_, track, true, received_[static_cast<size_t>(track)]++);
  }

 private:
  /// Sets of buffers that groups take in turn, so that every group begins with the first of its
  /// set.
  void use(const GroupBuffers& groups) {
    const int32_t arrivals = groups.arrivals(), depth = groups.gradient_depth();
    for (int slot = 0; slot < groups.slots(); ++slot)
      keys_.emplace_back(groups.received(0), arrivals, arrivals);
    packed_.resize(static_cast<size_t>(groups.slots()));
    gradients_.emplace_back(groups.gradients(0), depth, 2 * depth);
    gradients_.emplace_back(groups.gradients(0) + depth, depth, 2 * depth);
  }

  int lanes_, tracks_;
  const GroupBuffers* groups_ = nullptr;
  OpWriter writer_;
  std::vector<BufferRing> keys_, queries_, gradients_;
  std::vector<PackedKeys> packed_;
  std::vector<int64_t> sent_, received_;
};

}  // namespace ring
