#include "core/model_shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace ring {

std::string_view name(LayerKind kind) {
  switch (kind) {
    case LayerKind::kFull:
      return "full";
    case LayerKind::kSliding:
      return "sliding";
    case LayerKind::kChunked:
      return "chunked";
    case LayerKind::kOther:
      return "no attention";
  }
  return "?";
}

Bytes AttentionShape::kv_bytes_per_token(DType dtype) const {
  const int64_t dims = is_value_key ? head_dim : checked_add(head_dim, head_dim_v, "KV bytes");
  return checked_multiply(checked_multiply(kv_heads, dims, "KV bytes"), size_bytes(dtype),
                          "KV bytes");
}

Bytes AttentionShape::latent_bytes_per_token(DType dtype) const {
  return checked_multiply(latent_dim, size_bytes(dtype), "latent bytes");
}

const LayerGroup& group_of_layer(const ModelShape& model, int64_t layer) {
  for (const LayerGroup& group : model.groups) {
    if (std::binary_search(group.layers.begin(), group.layers.end(), layer)) return group;
  }
  throw_usage(fmt::format("{} has no layer {}", model.name, layer),
              fmt::format("Its layers are 0 to {}.", model.layers - 1));
}

const LayerGroup& dominant_group(const ModelShape& model) {
  for (const LayerKind kind : {LayerKind::kFull, LayerKind::kChunked, LayerKind::kSliding}) {
    for (const LayerGroup& group : model.groups) {
      if (group.shape.kind == kind) return group;
    }
  }
  throw_usage(fmt::format("{} has no layer with attention", model.name));
}

Problem problem_of(const AttentionShape& shape, DType dtype, int64_t seq_len) {
  Problem problem;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.head_dim = shape.head_dim;
  problem.head_dim_v = shape.head_dim_v;
  problem.dtype = dtype;
  switch (shape.kind) {
    case LayerKind::kFull:
      problem.mask = Mask::causal(seq_len);
      break;
    case LayerKind::kSliding:
      problem.mask = Mask::sliding_window(seq_len, shape.window);
      break;
    case LayerKind::kChunked:
      problem.mask = Mask::chunked(seq_len, shape.window);
      break;
    case LayerKind::kOther:
      throw_usage("this layer has no attention");
  }
  return problem;
}

}  // namespace ring
