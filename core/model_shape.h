// ModelShape: the attention of a transformer, layer by layer: heads, head dims, and what is seen.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/problem.h"
#include "core/units.h"

namespace ring {

enum class LayerKind {
  kFull,     ///< Causal over the whole sequence.
  kSliding,  ///< Causal within a window.
  kChunked,  ///< Causal within chunks.
  kOther,    ///< No attention: linear attention, state space, convolution.
};
std::string_view name(LayerKind kind);

/// The attention of one layer. For kOther only `kind` has a meaning.
struct AttentionShape {
  LayerKind kind = LayerKind::kFull;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;       ///< Of Q and K.
  int64_t head_dim_v = 0;     ///< Of V and the output.
  int64_t window = 0;         ///< Tokens of a window or a chunk.
  int64_t latent_dim = 0;     ///< Values per token of a compressed KV cache (MLA); 0: none.
  bool is_value_key = false;  ///< K serves as V too: one tensor travels.
  bool operator==(const AttentionShape&) const = default;

  /// K plus V of one token as attention reads them; only K where it serves as V.
  Bytes kv_bytes_per_token(DType dtype) const;
  /// The compressed form; 0 when there is none.
  Bytes latent_bytes_per_token(DType dtype) const;
};

/// Layers that are alike.
struct LayerGroup {
  AttentionShape shape;
  std::vector<int64_t> layers;  ///< Ascending, from 0.
};

struct ModelShape {
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t max_positions = 0;  ///< 0: not stated.
  DType dtype = DType::kBF16;
  std::vector<LayerGroup> groups;  ///< In order of their first layer.
};

/// The group that holds `layer`; throws Error(kUsage) when there is no such layer.
const LayerGroup& group_of_layer(const ModelShape& model, int64_t layer);
/// The first group of full attention, else of chunked, else of sliding: the one that costs most.
/// Throws Error(kUsage) when no layer has attention.
const LayerGroup& dominant_group(const ModelShape& model);

/// The attention of one layer over `seq_len` tokens, forward, batch 1.
/// Throws Error(kUsage) for a layer without attention.
Problem problem_of(const AttentionShape& shape, DType dtype, int64_t seq_len);

}  // namespace ring
