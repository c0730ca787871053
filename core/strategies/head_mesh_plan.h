// MeshPlan: who holds and computes what in the programs of head_split.h, and in which buffers.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/strategies/head_split.h"

namespace ring {

struct MeshPlan {
  MeshPlan(const Problem& the_problem, const Tuning& the_tuning, const Partition& the_partition,
           const HeadMesh& the_mesh);
  MeshPlan(const MeshPlan&) = delete;

  int groups() const { return partition.ranks() / mesh.inner; }
  int group_of(int rank) const { return rank / mesh.inner; }
  int member_of(int rank) const { return rank % mesh.inner; }
  /// The member of the same group `hops` places on.
  int mate(int rank, int hops) const {
    return group_of(rank) * mesh.inner + (member_of(rank) + hops + mesh.inner) % mesh.inner;
  }
  int group_number(int rank) const { return partition.ranks() + group_of(rank); }
  const TokenRanges& group_tokens(int rank) const { return gathered->shard(group_of(rank)); }
  HeadRange heads_of(int rank) const { return heads[static_cast<size_t>(member_of(rank))]; }
  Tokens tokens(int rank) const { return partition.shard_tokens(rank); }
  /// The row of the group at which the rows of the rank lie one after another, if they do.
  const std::optional<int64_t>& row_of(int rank) const { return rows[static_cast<size_t>(rank)]; }
  /// One phase of the ring over the groups, for the heads of the rank.
  const ProgramSource& ring_of(int rank, bool is_backward) const {
    const auto& rings = is_backward ? backward_rings : forward_rings;
    return *rings[static_cast<size_t>(member_of(rank))];
  }
  /// What a rank holds for one phase of the ring; nothing for a phase that there is not.
  RankStorage ring_storage(int rank, bool is_backward) const;
  /// Lanes of the all-to-alls come after those of the ring, or instead of them when there is none.
  int first_lane() const;
  bool is_heads_repeated() const;

  const Problem problem;
  const Tuning tuning;
  const Partition partition;
  const HeadMesh mesh;
  std::vector<HeadRange> heads;       ///< By member of a group.
  std::optional<Partition> gathered;  ///< One shard per group.
  std::vector<std::optional<int64_t>> rows;
  /// By member; of the passes that there are.
  std::vector<std::unique_ptr<ProgramSource>> forward_rings, backward_rings;
};

/// Numbers and shapes of the buffers of a rank.
class MeshBuffers {
 public:
  MeshBuffers(const MeshPlan& plan, int rank);

  int32_t gathered(Payload payload) const { return gathered_.at(payload); }
  /// A buffer of the ring by its number there and what lies in it; those at home are gathered.
  int32_t of_ring(Payload payload, int32_t number) const;
  /// Where rows of one mate, or for it, are packed.
  int32_t sent(Payload payload, int mate) const { return sent_.at({payload, mate}); }
  int32_t received(Payload payload, int mate) const { return received_.at({payload, mate}); }
  const std::vector<BufferShape>& shapes() const { return shapes_; }

 private:
  int32_t add(Payload payload, Tokens tokens, HeadRange heads, int filled = -1);
  void add_gathered(const MeshPlan& plan, int rank);
  void add_ring(const MeshPlan& plan, int rank);
  void add_stages(const MeshPlan& plan, int rank, int mate);

  std::vector<BufferShape> shapes_;
  std::map<Payload, int32_t> gathered_, ring_;
  std::map<std::pair<Payload, int>, int32_t> sent_, received_;
};

/// Moved in to the ranks that compute the heads, and out to those that own the tokens.
std::vector<Payload> payloads_in(const MeshPlan& plan, bool is_backward);
std::vector<Payload> payloads_out(const MeshPlan& plan, bool is_backward);

}  // namespace ring
