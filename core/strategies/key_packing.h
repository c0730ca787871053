// Packing: keys of some heads are copied next to one another before they are sent.
#pragma once

#include "core/strategies/kv_routing.h"
#include "core/strategies/rank_tracks.h"

namespace ring {

/// Appends the copies that are due before a group of heads is computed, so that the sends of the
/// next groups need not wait for it: before the first group as many as there are sets of buffers,
/// then one with every group. Nothing where heads are not grouped.
void pack_ahead(const KvPlan& plan, int rank, int group, RankTracks& tracks, OpBatch& batch);

}  // namespace ring
