// BufferOrder: what an op has to wait for so that the buffers it names hold what it expects.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "core/ring_program.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

/// Buffer that an op reads or writes.
struct BufferUse {
  int32_t buffer = kHomeBuffer;
  bool writes = false;
};

/// The shaped buffers that an op uses, those at home left out.
std::vector<BufferUse> buffer_uses(const Op& op);

/// Follows one rank. An op that reads a buffer waits for all that wrote it, one that writes it for
/// all that read it, whichever rows they are about; writes from several lanes do not wait for each
/// other. Lanes are in order, so one point per lane is remembered.
class BufferOrder {
 public:
  /// Adds to `deps` what the op has to wait for.
  void wait(const Op& op, Readers& deps) const;
  /// The op was appended.
  void done(const Op& op, LanePoint point);

 private:
  using Points = std::map<int32_t, int64_t>;  // By lane.

  std::map<int32_t, Points> readers_, writers_;
};

}  // namespace ring
