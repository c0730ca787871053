// The programs of head_split.h: an all-to-all in, a ring of gathered keys, an all-to-all back; and
// the same for the gradients.
#include "core/error.h"
#include "core/strategies/mesh_stream.h"

namespace ring {
namespace {

class MeshSource : public ProgramSource {
 public:
  MeshSource(const Problem& problem, const Tuning& tuning, const Partition& partition,
             const HeadMesh& mesh)
      : plan_(problem, tuning, partition, mesh) {
    if (!tuning.is_deterministic || !has_backward(problem.pass) || !plan_.is_heads_repeated())
      return;
    throw_usage(
        "repeated KV heads cannot be deterministic in the backward pass: several ranks "
        "sum shares of their gradients, as many as there are ranks",
        "leave out --deterministic, or use no more ranks than KV heads");
  }

  int ranks() const override { return plan_.partition.ranks(); }
  int lanes() const override { return plan_.first_lane() + 2 * plan_.tuning.lanes; }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<MeshStream>(plan_, lanes(), rank);
  }
  std::string name() const override { return plan_.tuning.strategy; }
  const Problem* problem() const override { return &plan_.problem; }
  const Partition* partition() const override { return &plan_.partition; }
  std::vector<std::string> notes() const override {
    if (plan_.backward_rings.empty()) return {};
    return plan_.backward_rings.front()->notes();
  }
  std::vector<TokenRanges> groups() const override {
    std::vector<TokenRanges> tokens;
    for (int group = 0; group < plan_.groups(); ++group)
      tokens.push_back(plan_.gathered->shard(group));
    return tokens;
  }

  RankStorage storage(int rank) const override {
    const int32_t states = plan_.ring_storage(rank, false).states;
    const HeadRange heads = plan_.heads_of(rank);
    RankStorage storage;
    storage.query_tokens = plan_.tokens(rank);
    storage.has_home_inputs = !plan_.mesh.are_inputs_split;
    storage.home_tokens = storage.has_home_inputs ? plan_.tokens(rank) : 0;
    storage.states = 0;
    storage.shaped_buffers = MeshBuffers(plan_, rank).shapes();
    storage.shaped_states.assign(
        has_forward(plan_.problem.pass) ? static_cast<size_t>(states) : 0,
        {token_count(plan_.group_tokens(rank)), static_cast<int32_t>(heads.begin),
         static_cast<int32_t>(heads.end)});
    return storage;
  }

 private:
  MeshPlan plan_;
};

}  // namespace

std::unique_ptr<ProgramSource> make_head_mesh(const Problem& problem, const Tuning& tuning,
                                              const Partition& partition, const HeadMesh& mesh) {
  RING_ASSERT(mesh.inner >= 1 && partition.ranks() % mesh.inner == 0);
  return std::make_unique<MeshSource>(problem, tuning, partition, mesh);
}

}  // namespace ring
