// Payload sizes: how many bytes and which heads the rows of a message or buffer are made of.
#pragma once

#include "core/ring_program.h"

namespace ring {

/// Half-open range of heads.
struct HeadRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  bool operator==(const HeadRange&) const = default;
};

/// [head_begin, head_end), or all query heads for 0..0.
HeadRange query_heads(const Problem& problem, int32_t head_begin, int32_t head_end);
/// The KV heads that these query heads read.
HeadRange kv_heads_of(const Problem& problem, HeadRange query_heads);
/// The heads that the tensor of a payload has for these query heads: KV heads for K and V.
HeadRange heads_in(const Problem& problem, Payload payload, HeadRange query_heads);

/// Bytes of `rows` tokens of all batch elements, in the types that Payload says.
Bytes payload_bytes(const Problem& problem, Payload payload, HeadRange query_heads, Tokens rows);
/// Bytes of an attention state: u, m and l of `rows` rows, fp32.
Bytes state_bytes(const Problem& problem, HeadRange query_heads, Tokens rows);

}  // namespace ring
