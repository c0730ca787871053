// Tuning: the choices an engineer turns: strategy, partition, block size, depth, lanes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/units.h"

namespace ring {

/// What travels in the backward pass: K and V with their gradients, or the query side with dQ.
enum class BackwardMoves { kAuto, kKeys, kQueries };
std::string_view name(BackwardMoves moves);
/// "auto", "kv" or "q"; throws Error(kUsage).
BackwardMoves parse_backward_moves(std::string_view text);

struct Tuning {
  std::string strategy = "pass-kv";  ///< Name, with its parameter behind a colon if it has one.
  int ranks = 2;
  std::string partition = "zigzag";  ///< Text form, see Partition::parse.
  Tokens block_tokens = 1024;        ///< KV tokens that one attention op works on.
  int64_t blocks_per_message = 0;    ///< Blocks that travel together; 0 means the whole shard.
  int pipeline_depth = 2;            ///< Receive buffers a rank owns, one message each.
  int lanes = 1;                     ///< Send lanes and receive lanes per rank.
  bool is_deterministic = false;     ///< Merge in global order (docs/numerics.md).
  BackwardMoves backward = BackwardMoves::kAuto;
  int accumulation_steps = 1;        ///< Times the pass is repeated, gradients summed in fp32.
  Picoseconds optimizer_gap_ps = 0;  ///< Computation of other kind after those.
};

}  // namespace ring
