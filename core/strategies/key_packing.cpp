#include "core/strategies/key_packing.h"

#include "core/strategies/rows_op.h"

namespace ring {
namespace {

void pack(const KvPlan& plan, int rank, int group, RankTracks& tracks, OpBatch& batch) {
  const KeySlice all{0, plan.partition.shard_tokens(rank)};
  Op op = rows_op(plan.problem, OpKind::kCopy, Payload::kKeyValue, rank, all, plan.heads(group));
  op.buffer = tracks.own_buffer(group);
  PackedKeys& packed = tracks.packed(group);
  packed.done = tracks.writer().append(op, packed.readers, batch);
  packed.readers.clear();
}

}  // namespace

void pack_ahead(const KvPlan& plan, int rank, int group, RankTracks& tracks, OpBatch& batch) {
  if (tracks.groups() == nullptr || !tracks.groups()->packs()) return;
  const int slots = tracks.groups()->slots();
  const int first = group == 0 ? 0 : group + slots - 1;
  for (int next = first; next < std::min(group + slots, plan.groups()); ++next)
    pack(plan, rank, next, tracks, batch);
}

}  // namespace ring
