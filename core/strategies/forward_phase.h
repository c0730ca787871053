// ForwardPhase: the forward pass of one rank, begun anew at every repetition.
#pragma once

#include <memory>

#include "core/ring_program.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

class ForwardPhase {
 public:
  virtual ~ForwardPhase() = default;
  /// Begins a pass; its messages are numbered from `first_message` on.
  virtual void begin(int64_t first_message) = 0;
  /// Appends ops, a few at a time; false when the pass has no more.
  virtual bool next(OpBatch& batch) = 0;
  /// States of the rank's own rows held at once so far.
  virtual int32_t states() const { return 1; }
};

/// A forward pass in which something else than keys travels, in front of a backward pass by a
/// routing. It has the routing's track 0 and the track of its gradients to itself.
class ForwardPart {
 public:
  virtual ~ForwardPart() = default;
  /// This and `tracks` must outlive the phase. Shaped buffers are numbered from `first_buffer` on.
  virtual std::unique_ptr<ForwardPhase> phase(int rank, RankTracks& tracks,
                                              int32_t first_buffer) const = 0;
  virtual void add_storage(int rank, RankStorage& storage) const = 0;
  /// How many message numbers a pass takes.
  virtual int64_t messages() const = 0;
};

}  // namespace ring
