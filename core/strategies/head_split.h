// Head split: which heads each rank computes, and programs in which ranks hold heads, not tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/payload.h"
#include "core/ring_program.h"

namespace ring {

/// How heads may be dealt when they do not divide.
enum class HeadRule {
  kEven,    ///< As many KV heads for every rank.
  kRepeat,  ///< More ranks than KV heads: several ranks get a copy of the same KV head.
  kUneven,  ///< Whole KV heads with their query heads; the first ranks get one more.
};

/// Query heads of each of `ranks` ranks. A KV head and its query heads stay together unless the
/// rule is kRepeat. Throws Error(kUsage) naming the legal degrees when heads cannot be dealt so.
std::vector<HeadRange> split_heads(int64_t heads, int64_t kv_heads, int ranks, HeadRule rule);

/// Degrees that deal heads evenly: the divisors of the KV heads, and with `repeats` also the
/// divisors of the query heads that are multiples of the KV heads.
std::vector<int64_t> legal_head_degrees(int64_t heads, int64_t kv_heads, bool repeats);

/// Ranks are a mesh of groups of `inner` neighbours. Within a group heads are split: an all-to-all
/// turns tokens of all heads into all tokens of the group of some heads, and another one brings
/// the output back. Between groups K and V of those heads walk a ring.
struct HeadMesh {
  int inner = 1;
  HeadRule rule = HeadRule::kEven;
  /// Q, K and V lie split by heads already, as projections split by heads leave them: only output
  /// moves.
  bool are_inputs_split = false;
};
std::unique_ptr<ProgramSource> make_head_mesh(const Problem& problem, const Tuning& tuning,
                                              const Partition& partition, const HeadMesh& mesh);

}  // namespace ring
