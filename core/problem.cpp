#include "core/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace ring {

std::string_view name(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kForwardBackward:
      return "forward+backward";
    case Pass::kBackward:
      return "backward";
  }
  return "?";
}

Pass parse_pass(std::string_view text) {
  if (text == "forward") return Pass::kForward;
  if (text == "forward+backward") return Pass::kForwardBackward;
  if (text == "backward") return Pass::kBackward;
  throw_usage(fmt::format("pass '{}' is not known", text),
              "allowed: forward, forward+backward, backward");
}

float Problem::softmax_scale() const {
  return static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(head_dim)));
}

Bytes Problem::kv_bytes(Tokens tokens) const {
  return batch * tokens * kv_heads * (head_dim + head_dim_v) * size_bytes(dtype);
}

Flops Problem::flops(int64_t visible_pairs) const {
  return checked_multiply(2 * (head_dim + head_dim_v) * heads * batch, visible_pairs,
                          "the number of flops");
}

Flops Problem::backward_flops(int64_t visible_pairs) const {
  return checked_multiply(2 * (3 * head_dim + 2 * head_dim_v) * heads * batch, visible_pairs,
                          "the number of flops");
}

Bytes Problem::query_side_bytes(Tokens tokens) const {
  constexpr Bytes kLseAndDelta = 2 * 4;
  return batch * tokens * heads * ((head_dim + head_dim_v) * size_bytes(dtype) + kLseAndDelta);
}

Bytes Problem::query_gradient_bytes(Tokens tokens) const {
  return batch * tokens * heads * head_dim * 4;
}

Bytes Problem::key_gradient_bytes(Tokens tokens) const {
  return batch * tokens * kv_heads * (head_dim + head_dim_v) * 4;
}

void validate(const Problem& problem) {
  const auto positive = [](int64_t value, std::string_view what) {
    if (value < 1) throw_usage(fmt::format("{} is {}; it must be at least 1", what, value));
  };
  positive(problem.batch, "batch");
  positive(problem.heads, "heads");
  positive(problem.kv_heads, "kv_heads");
  positive(problem.head_dim, "head_dim");
  positive(problem.head_dim_v, "head_dim_v");
  positive(problem.seq_len(), "seq_len");
  if (problem.heads % problem.kv_heads != 0) {
    int64_t below = std::min(problem.kv_heads, problem.heads);
    while (problem.heads % below != 0) --below;
    throw_usage(
        fmt::format("kv_heads {} does not divide heads {}", problem.kv_heads, problem.heads),
        fmt::format("each KV head serves the same number of query heads; nearest legal: --kv-heads "
                    "{}",
                    below));
  }
  static constexpr int64_t kLargestHeadDim = 256;
  const bool is_key_dim = problem.head_dim > kLargestHeadDim;
  const bool is_value_dim = problem.head_dim_v > kLargestHeadDim;
  if (is_key_dim || is_value_dim) {
    throw_usage(
        fmt::format("head_dim {} / head_dim_v {}: the largest supported is {}", problem.head_dim,
                    problem.head_dim_v, kLargestHeadDim),
        fmt::format("a model whose layers differ may have smaller ones: choose with "
                    "--layer; nearest legal: {}{}{} {}",
                    is_key_dim ? "--head-dim" : "", is_key_dim && is_value_dim ? " and " : "",
                    is_value_dim ? "--head-dim-v" : "", kLargestHeadDim));
  }
  if (!std::isfinite(problem.scale)) throw_usage("scale is not a finite number");
  int64_t count = checked_multiply(problem.batch, problem.heads, "batch x heads");
  count = checked_multiply(count, 2 * (problem.head_dim + problem.head_dim_v), "flops per pair");
  checked_multiply(count, problem.seq_len(), "flops per query");
}

}  // namespace ring
