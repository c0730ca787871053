#include "core/strategies/head_split.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/counted.h"
#include "core/error.h"

namespace ring {
namespace {

/// "1, 2, 4, 8".
std::string degrees_text(const std::vector<int64_t>& degrees) {
  return fmt::format("{}", fmt::join(degrees, ", "));
}

[[noreturn]] void refuse(int64_t heads, int64_t kv_heads, int ranks) {
  const std::vector<int64_t> even = legal_head_degrees(heads, kv_heads, false);
  std::vector<int64_t> repeated;
  for (const int64_t degree : legal_head_degrees(heads, kv_heads, true)) {
    if (std::find(even.begin(), even.end(), degree) == even.end()) repeated.push_back(degree);
  }
  std::string hint = "legal degrees: " + degrees_text(even);
  if (!repeated.empty()) hint += "; with K and V repeated (:repeat) also " + degrees_text(repeated);
  if (kv_heads > 1) hint += fmt::format("; unevenly (:uneven) any up to {}", kv_heads);
  throw_usage(fmt::format("{} query heads over {} KV heads cannot be split evenly over {} ranks: "
                          "a KV head and its {} stay together",
                          heads, kv_heads, ranks, counted(heads / kv_heads, "query head")),
              hint);
}

}  // namespace

std::vector<int64_t> legal_head_degrees(int64_t heads, int64_t kv_heads, bool repeats) {
  std::vector<int64_t> degrees;
  for (int64_t degree = 1; degree <= heads; ++degree) {
    const bool is_even = kv_heads % degree == 0;
    const bool is_repeated = repeats && heads % degree == 0 && degree % kv_heads == 0;
    if (is_even || is_repeated) degrees.push_back(degree);
  }
  return degrees;
}

std::vector<HeadRange> split_heads(int64_t heads, int64_t kv_heads, int ranks, HeadRule rule) {
  const int64_t group = heads / kv_heads;
  std::vector<HeadRange> split;
  const bool is_even = kv_heads % ranks == 0;
  const bool is_repeated = heads % ranks == 0 && ranks % kv_heads == 0;
  if (!is_even && rule == HeadRule::kRepeat && is_repeated) {
    for (int rank = 0; rank < ranks; ++rank)
      split.push_back({rank * (heads / ranks), (rank + 1) * (heads / ranks)});
    return split;
  }
  if (!is_even && (rule != HeadRule::kUneven || ranks > kv_heads)) refuse(heads, kv_heads, ranks);
  int64_t begin = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t end = begin + kv_heads / ranks + (rank < kv_heads % ranks ? 1 : 0);
    split.push_back({begin * group, end * group});
    begin = end;
  }
  return split;
}

}  // namespace ring
