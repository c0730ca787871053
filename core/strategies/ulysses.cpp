// Ulysses: an all-to-all turns token shards into head shards, attention is local, and back.
#include <fmt/format.h>

#include "core/error.h"
#include "core/strategies/cycle_routing.h"
#include "core/strategies/head_split.h"
#include "core/strategy.h"

namespace ring {
namespace {

std::string_view words_behind_colon(const Tuning& tuning) {
  const std::string_view text = tuning.strategy;
  const size_t colon = text.find(':');
  return colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
}

HeadRule parse_rule(const Tuning& tuning, std::string_view word, std::string_view allowed) {
  if (word.empty()) return HeadRule::kEven;
  if (word == "repeat") return HeadRule::kRepeat;
  if (word == "uneven") return HeadRule::kUneven;
  throw_usage(fmt::format("strategy '{}': '{}' is not known", tuning.strategy, word),
              fmt::format("allowed: {}", allowed));
}

std::unique_ptr<ProgramSource> make_mesh(const Problem& problem, const Tuning& tuning,
                                         const Partition& partition, const HeadMesh& mesh) {
  if (mesh.inner > 1) return make_head_mesh(problem, tuning, partition, mesh);
  return make_kv_program(problem, tuning, partition, [](const KvPlan& plan) {
    return std::make_unique<CycleRouting>(plan, std::vector<int>{1});
  });
}

std::unique_ptr<ProgramSource> make_ulysses(const Problem& problem, const Tuning& tuning,
                                            const Partition& partition) {
  const HeadRule rule =
      parse_rule(tuning, words_behind_colon(tuning), "ulysses, ulysses:repeat, ulysses:uneven");
  return make_mesh(problem, tuning, partition, {partition.ranks(), rule, false});
}

std::unique_ptr<ProgramSource> make_ulysses_ring(const Problem& problem, const Tuning& tuning,
                                                 const Partition& partition) {
  constexpr std::string_view kAllowed =
      "ulysses-ring:U, ulysses-ring:U,repeat, "
      "ulysses-ring:U,uneven";
  const std::string_view words = words_behind_colon(tuning);
  const size_t comma = words.find(',');
  const HeadRule rule = parse_rule(
      tuning, comma == std::string_view::npos ? std::string_view() : words.substr(comma + 1),
      kAllowed);
  const int64_t inner = words.empty() ? 0
                                      : parse_count(words.substr(0, comma),
                                                    fmt::format("strategy '{}'", tuning.strategy));
  if (words.empty()) {
    throw_usage("strategy ulysses-ring: how many ranks split the heads is not given",
                fmt::format("allowed: {} with U ranks per group, for example the GPUs of one node",
                            kAllowed));
  }
  if (inner < 1 || partition.ranks() % inner != 0) {
    throw_usage(fmt::format("strategy '{}' over {} ranks: the ranks that split heads must be a "
                            "divisor of the number of ranks",
                            tuning.strategy, partition.ranks()),
                fmt::format("allowed: {} with U ranks per group, for example the GPUs of one node",
                            kAllowed));
  }
  return make_mesh(problem, tuning, partition, {static_cast<int>(inner), rule, false});
}

}  // namespace

// "ulysses" deals heads evenly; "ulysses:repeat" sends the same KV head to several ranks when
// there are more ranks than KV heads; "ulysses:uneven" deals whole KV heads as they come. Source:
// DeepSpeed-Ulysses, arXiv 2309.14509.
Strategy ulysses_strategy() {
  return {"ulysses",
          "an all-to-all turns tokens into heads, attention is local, another one brings O back",
          "repeat or uneven",
          make_ulysses,
          {"(P - 1)/P of S/P ((Hq + 2 Hkv) D + Hq Dv) b, once and not per step",
           "own Q, K, V and all tokens of Hq/P heads",
           "fast links between all ranks and at least P KV heads; balanced under every mask"}};
}

// "ulysses-ring:U": groups of U neighbours split heads, and K and V of those heads walk a ring
// over the groups. ":U,repeat" and ":U,uneven" as above. Source: arXiv 2405.07719.
Strategy ulysses_ring_strategy() {
  return {
      "ulysses-ring",
      "heads are split inside groups of U ranks, K and V of those heads walk a ring over groups",
      "U ranks of a group, with ,repeat or ,uneven",
      make_ulysses_ring,
      {"Ulysses over U ranks, then per step S U/P 2 Hkv/U D b",
       "own Q, K, V; the group's tokens of Hq/U heads; depth KV buffers",
       "more ranks than KV heads: all-to-all inside nodes, ring between them"}};
}

}  // namespace ring
