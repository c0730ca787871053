// Tuning: the choices an engineer turns: strategy, partition, block size, depth, lanes.
#pragma once

#include <cstdint>
#include <string>

#include "core/units.h"

namespace ring {

struct Tuning {
  std::string strategy = "pass-kv";  ///< Name, with its parameter behind a colon if it has one.
  int ranks = 2;
  std::string partition = "zigzag";  ///< Text form, see Partition::parse.
  Tokens block_tokens = 1024;        ///< KV tokens that one attention op works on.
  int64_t blocks_per_message = 0;    ///< Blocks that travel together; 0 means the whole shard.
  int pipeline_depth = 2;            ///< Receive buffers a rank owns, one message each.
  int lanes = 1;                     ///< Send lanes and receive lanes per rank.
  bool is_deterministic = false;     ///< Merge in global order (docs/numerics.md).
};

}  // namespace ring
