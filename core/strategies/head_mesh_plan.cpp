#include "core/strategies/head_mesh_plan.h"

#include <algorithm>

#include "core/strategies/cycle_routing.h"

namespace ring {
namespace {

/// The tokens of several shards in ascending order.
TokenRanges union_of(const Partition& partition, int first, int count) {
  std::vector<int64_t> positions;
  for (int rank = first; rank < first + count; ++rank) {
    for (const AffineRange& range : partition.shard(rank)) {
      for (int64_t i = 0; i < range.count; ++i) positions.push_back(range.position(i));
    }
  }
  std::sort(positions.begin(), positions.end());
  TokenRanges merged;
  for (const int64_t position : positions) {
    if (!merged.empty() && merged.back().last() + 1 == position) {
      ++merged.back().count;
    } else {
      merged.push_back({position, 1, 1});
    }
  }
  return merged;
}

std::optional<int64_t> row_in_group(const TokenRanges& group, const TokenRanges& shard) {
  if (shard.empty()) return std::nullopt;
  int64_t next = index_of(group, shard.front().begin);
  const int64_t first = next;
  for (const AffineRange& range : shard) {
    for (int64_t i = 0; i < range.count; ++i, ++next) {
      if (index_of(group, range.position(i)) != next) return std::nullopt;
    }
  }
  return first;
}

}  // namespace

MeshPlan::MeshPlan(const Problem& the_problem, const Tuning& the_tuning,
                   const Partition& the_partition, const HeadMesh& the_mesh)
    : problem(the_problem), tuning(the_tuning), partition(the_partition), mesh(the_mesh) {
  heads = split_heads(problem.heads, problem.kv_heads, mesh.inner, mesh.rule);
  std::vector<TokenRanges> unions;
  for (int group = 0; group < groups(); ++group)
    unions.push_back(union_of(partition, group * mesh.inner, mesh.inner));
  gathered.emplace(Partition::from_ranges("groups", problem.seq_len(), std::move(unions)));
  for (int rank = 0; rank < partition.ranks(); ++rank)
    rows.push_back(row_in_group(group_tokens(rank), partition.shard(rank)));
  Tuning once = tuning;
  once.accumulation_steps = 1;
  once.optimizer_gap_ps = 0;
  for (const HeadRange& some : heads) {
    Problem part = problem;
    part.heads = some.count();
    part.kv_heads = kv_heads_of(problem, some).count();
    const auto ring = [&](Pass pass) {
      part.pass = pass;
      return make_kv_program(part, once, *gathered, [](const KvPlan& plan) {
        return std::make_unique<CycleRouting>(plan, std::vector<int>{1});
      });
    };
    if (has_forward(problem.pass)) forward_rings.push_back(ring(Pass::kForward));
    if (has_backward(problem.pass)) backward_rings.push_back(ring(Pass::kBackward));
  }
}

RankStorage MeshPlan::ring_storage(int rank, bool is_backward) const {
  if (!(is_backward ? has_backward(problem.pass) : has_forward(problem.pass))) return {};
  return ring_of(rank, is_backward).storage(group_of(rank));
}

int MeshPlan::first_lane() const {
  if (groups() == 1) return 1;
  return (backward_rings.empty() ? forward_rings : backward_rings).front()->lanes();
}

bool MeshPlan::is_heads_repeated() const {
  return std::adjacent_find(heads.begin(), heads.end(), [this](HeadRange a, HeadRange b) {
           return kv_heads_of(problem, a).end > kv_heads_of(problem, b).begin;
         }) != heads.end();
}

MeshBuffers::MeshBuffers(const MeshPlan& plan, int rank) {
  add_gathered(plan, rank);
  add_ring(plan, rank);
  for (int hops = 1; hops < plan.mesh.inner; ++hops) add_stages(plan, rank, plan.mate(rank, hops));
}

int32_t MeshBuffers::of_ring(Payload payload, int32_t number) const {
  return number == kHomeBuffer ? gathered(payload) : ring_.at(payload) + number;
}

int32_t MeshBuffers::add(Payload payload, Tokens tokens, HeadRange heads, int filled) {
  shapes_.push_back({payload, tokens, static_cast<int32_t>(heads.begin),
                     static_cast<int32_t>(heads.end), filled});
  return static_cast<int32_t>(shapes_.size()) - 1;
}

// The tensors of a query side are gathered into one buffer, so that the ring can move it.
void MeshBuffers::add_gathered(const MeshPlan& plan, int rank) {
  const bool is_backward = has_backward(plan.problem.pass);
  const Tokens group = token_count(plan.group_tokens(rank));
  const HeadRange heads = plan.heads_of(rank);
  const int number = plan.group_number(rank);
  // A backward pass alone finds what the forward pass has left.
  const int left = has_forward(plan.problem.pass) ? -1 : number;
  const int inputs = plan.mesh.are_inputs_split ? number : left;
  gathered_[Payload::kQuery] =
      add(is_backward ? Payload::kQuerySide : Payload::kQuery, group, heads, inputs);
  gathered_[Payload::kKeyValue] = add(Payload::kKeyValue, group, heads, inputs);
  gathered_[Payload::kOutput] = add(Payload::kOutput, group, heads, left);
  if (!is_backward) return;
  gathered_[Payload::kQuerySide] = gathered_[Payload::kOutputGradient] = gathered_[Payload::kQuery];
  const int end = plan.mesh.are_inputs_split ? number : -1;
  for (const Payload payload : {Payload::kKeyGradients, Payload::kQueryGradients})
    gathered_[payload] = add(payload, group, heads, end);
}

void MeshBuffers::add_ring(const MeshPlan& plan, int rank) {
  const HeadRange heads = plan.heads_of(rank);
  const RankStorage forward = plan.ring_storage(rank, false);
  const RankStorage backward = plan.ring_storage(rank, true);
  const auto add_many = [&](Payload payload, int32_t count, Tokens tokens) {
    ring_[payload] = static_cast<int32_t>(shapes_.size());
    for (int32_t i = 0; i < count; ++i) add(payload, tokens, heads);
  };
  add_many(Payload::kKeyValue, std::max(forward.buffers, backward.buffers),
           std::max(forward.buffer_tokens, backward.buffer_tokens));
  add_many(Payload::kQuerySide, backward.query_buffers, backward.query_buffer_tokens);
  add_many(backward.gradients, backward.gradient_buffers, backward.gradient_tokens);
}

void MeshBuffers::add_stages(const MeshPlan& plan, int rank, int mate) {
  const HeadRange own = plan.heads_of(rank), theirs = plan.heads_of(mate);
  const bool is_staged = !plan.row_of(mate).has_value();
  for (const bool is_backward : {false, true}) {
    for (const Payload payload : payloads_in(plan, is_backward)) {
      sent_[{payload, mate}] = add(payload, plan.tokens(rank), theirs);
      if (is_staged) received_[{payload, mate}] = add(payload, plan.tokens(mate), own);
    }
    for (const Payload payload : payloads_out(plan, is_backward)) {
      if (is_staged) sent_[{payload, mate}] = add(payload, plan.tokens(mate), own);
      received_[{payload, mate}] = add(payload, plan.tokens(rank), theirs);
    }
  }
}

std::vector<Payload> payloads_in(const MeshPlan& plan, bool is_backward) {
  const Pass pass = plan.problem.pass;
  if (is_backward && has_backward(pass)) return {Payload::kOutputGradient};
  if (is_backward || !has_forward(pass) || plan.mesh.are_inputs_split) return {};
  return {Payload::kQuery, Payload::kKeyValue};
}

std::vector<Payload> payloads_out(const MeshPlan& plan, bool is_backward) {
  const Pass pass = plan.problem.pass;
  if (!is_backward)
    return has_forward(pass) ? std::vector{Payload::kOutput} : std::vector<Payload>{};
  if (!has_backward(pass) || plan.mesh.are_inputs_split) return {};
  return {Payload::kQueryGradients, Payload::kKeyGradients};
}

}  // namespace ring
