// BackwardMemory: what one rank of an executor holds for the backward pass.
#pragma once

#include <vector>

#include "core/ring_program.h"
#include "kernels/data.h"
#include "kernels/memory.h"

namespace ring {

/// The query side of some rows: Q and dO (row, batch, head, dim) in the model dtype, and (lse,
/// delta) pairs (row, batch, head), fp32. Runs of rows are contiguous in each.
struct QuerySideBuffer {
  Pages q, d_out, stats;
};

/// dK (token, batch, kv_head, head_dim) and dV (token, batch, kv_head, head_dim_v), or dQ (row,
/// batch, head, head_dim) in `first` alone; fp32.
struct GradientBuffer {
  Pages first, second;
};

/// Empty in a program without a backward pass.
struct BackwardMemory {
  BackwardMemory() = default;
  BackwardMemory(const Problem& problem, const RankStorage& storage);

  /// Touches everything and fills dO with the values of the tokens.
  void fill(const Problem& problem, const TokenRanges& tokens, const DataSource& data);
  Bytes bytes() const;

  /// dO and stats of the own rows; `q` stays empty, since Q lies with the forward pass.
  QuerySideBuffer home;
  std::vector<QuerySideBuffer> received;
  GradientBuffer d_keys;                  ///< Of the own shard.
  Pages d_queries;                        ///< Of the own rows.
  std::vector<GradientBuffer> gradients;  ///< On their way.
};

}  // namespace ring
