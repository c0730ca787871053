#include "core/strategies/shard_messages.h"

#include <algorithm>

#include "core/integer_math.h"
#include "core/units.h"

namespace ring {

ShardMessages::ShardMessages(const Partition& partition, const Tuning& tuning)
    : partition_(partition),
      block_tokens_(std::min(tuning.block_tokens, partition.longest_shard_tokens())) {
  const int64_t longest = partition.longest_shard_tokens();
  if (tuning.blocks_per_message == 0) {
    message_tokens_ = longest;
  } else {
    const int64_t blocks = std::min(tuning.blocks_per_message, ceil_div(longest, block_tokens_));
    message_tokens_ = std::min(block_tokens_ * blocks, longest);
  }
  for (int shard = 0; shard < partition.ranks(); ++shard) {
    rounds_ = std::max(rounds_, messages_of(shard));
  }
}

int64_t ShardMessages::messages_of(int shard) const {
  return ceil_div(partition_.shard_tokens(shard), message_tokens_);
}

KeySlice ShardMessages::message(int shard, int64_t index) const {
  return {index * message_tokens_,
          std::min((index + 1) * message_tokens_, partition_.shard_tokens(shard))};
}

int64_t ShardMessages::blocks_of(KeySlice slice) const {
  return ceil_div(slice.end - slice.begin, block_tokens_);
}

KeySlice ShardMessages::block(KeySlice slice, int64_t index) const {
  const int64_t begin = slice.begin + index * block_tokens_;
  return {begin, std::min(begin + block_tokens_, slice.end)};
}

}  // namespace ring
