// How a KV shard is cut into messages and blocks; shared by the strategies that move keys.
#pragma once

#include <cstdint>

#include "core/partition.h"
#include "core/tuning.h"

namespace ring {

/// Half-open slice of the local order of a shard.
struct KeySlice {
  int64_t begin = 0;
  int64_t end = 0;
};

class ShardMessages {
 public:
  ShardMessages(const Partition& partition, const Tuning& tuning);

  /// Tokens of a full message.
  Tokens message_tokens() const { return message_tokens_; }
  int64_t messages_of(int shard) const;
  /// The largest number of messages of any shard.
  int64_t rounds() const { return rounds_; }
  KeySlice message(int shard, int64_t index) const;
  /// Number of blocks of a slice, and its blocks; a block never crosses a message.
  int64_t blocks_of(KeySlice slice) const;
  KeySlice block(KeySlice slice, int64_t index) const;

 private:
  const Partition& partition_;
  Tokens block_tokens_;
  Tokens message_tokens_;
  int64_t rounds_ = 0;
};

}  // namespace ring
