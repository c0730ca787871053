// Pairs: every visible (query, key) pair is computed by exactly one attention op.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/program_check_parts.h"

namespace ring::check {
namespace {

struct Rectangle {
  const Op* op;
  OpId id;
};

bool overlap(const Op& a, const Op& b) {
  return a.kv_begin < b.kv_end && b.kv_begin < a.kv_end && a.q_begin < b.q_end &&
         b.q_begin < a.q_end && a.head_begin < b.head_end && b.head_begin < a.head_end;
}

/// Rectangles of one (query shard, key shard), sorted by kv_begin.
void check_disjoint(const RingProgram& program, std::vector<Rectangle>& rectangles,
                    std::vector<Fault>& faults) {
  std::sort(rectangles.begin(), rectangles.end(), [](const Rectangle& a, const Rectangle& b) {
    return std::pair(a.op->kv_begin, a.id) < std::pair(b.op->kv_begin, b.id);
  });
  for (size_t i = 0; i < rectangles.size(); ++i) {
    for (size_t j = i + 1;
         j < rectangles.size() && rectangles[j].op->kv_begin < rectangles[i].op->kv_end; ++j) {
      if (!overlap(*rectangles[i].op, *rectangles[j].op)) continue;
      faults.push_back(
          {FaultKind::kPairsRepeated,
           fmt::format("{} computes pairs that {} computes too",
                       describe(program, rectangles[j].id), describe(program, rectangles[i].id)),
           {rectangles[i].id, rectangles[j].id}});
    }
  }
}

}  // namespace

void check_pairs(const RingProgram& program, std::vector<Fault>& faults) {
  if (!program.has_attention) return;
  const int shards = program.shards_and_groups();
  // Groups are used by all ops on pairs or by none.
  const int first = program.groups.empty() ? 0 : program.partition.ranks();
  using Group = std::tuple<OpKind, int32_t, int32_t, int32_t>;  // Kind, micro-step, shards.
  std::map<Group, std::vector<Rectangle>> rectangles;
  std::map<std::pair<OpKind, int32_t>, std::vector<int64_t>> computed;  // Pairs x heads by shard.
  for (int32_t step = 0; step < program.tuning.accumulation_steps; ++step) {
    const std::vector<int64_t> none(static_cast<size_t>(shards), 0);
    if (has_forward(program.problem.pass)) computed[{OpKind::kAttend, step}] = none;
    if (has_backward(program.problem.pass)) computed[{OpKind::kBackward, step}] = none;
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const auto& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      if (!computes_pairs(op.kind)) continue;
      const OpId id{rank, static_cast<int64_t>(i)};
      const auto sums = computed.find({op.kind, op.micro_step});
      if (sums == computed.end() || op.q_shard < first || op.kv_shard < first) {
        faults.push_back(
            {FaultKind::kBadOp,
             fmt::format("{} {}", describe(program, id),
                         sums == computed.end()
                             ? "is of a pass or micro-step that the program does not have"
                             : "names a shard where all others name groups of shards"),
             {id}});
        continue;
      }
      rectangles[{op.kind, op.micro_step, op.q_shard, op.kv_shard}].push_back({&op, id});
      const int64_t pairs = program.problem.mask.count_visible(
          slice(program.tokens_of(op.q_shard), op.q_begin, op.q_end),
          slice(program.tokens_of(op.kv_shard), op.kv_begin, op.kv_end));
      if (pairs != op.visible_pairs) {
        faults.push_back({FaultKind::kBadOp,
                          fmt::format("{} says {} visible pairs, but has {}", describe(program, id),
                                      op.visible_pairs, pairs),
                          {id}});
      }
      sums->second[static_cast<size_t>(op.q_shard)] += pairs * (op.head_end - op.head_begin);
    }
  }
  for (auto& [group, entry] : rectangles) check_disjoint(program, entry, faults);
  if (program.skips_pairs) return;
  for (int shard = first; shard < shards; ++shard) {
    const int64_t wanted = program.problem.heads *
                           program.problem.mask.count_visible(
                               program.tokens_of(shard), {{0, program.partition.seq_len(), 1}});
    for (const auto& [group, sums] : computed) {
      const int64_t found = sums[static_cast<size_t>(shard)];
      if (found >= wanted) continue;
      faults.push_back({FaultKind::kPairsMissing,
                        fmt::format("the queries of shard {} see {} (head, query, key) triples, "
                                    "but only {} are computed by {} ops",
                                    shard, wanted, found, name(group.first)),
                        {}});
    }
  }
}

}  // namespace ring::check
