// RankGradients: the memory of one rank for the backward pass, on its device.
#pragma once

#include <functional>
#include <vector>

#include "core/ring_program.h"
#include "kernels/cuda/runtime.h"
#include "kernels/data.h"

namespace ring::cuda {

/// Of the own rows, and uniform buffers of what travels; shaped ones lie with the other buffers. Of
/// gradients and of the query side: (token, batch, head, dim), so that runs of tokens are
/// contiguous. Sums are fp32; lse and delta (row, batch, head) of the rows stand apart.
struct RankGradients {
  struct QuerySide {
    std::byte *q = nullptr, *d_out = nullptr;
    float *lse = nullptr, *delta = nullptr;
  };
  /// dK and dV, or dQ in `first` alone.
  struct Sums {
    float *first = nullptr, *second = nullptr;
  };
  using Take = std::function<std::byte*(Bytes)>;

  /// Takes its memory by `take`, and fills dO with the values of the tokens.
  RankGradients(const Problem& problem, const RankStorage& storage, const TokenRanges& tokens,
                const DataSource& data, DeviceRuntime& runtime, const Take& take);

  QuerySide home;  ///< Without Q, which lies with the forward pass.
  std::vector<QuerySide> received;
  Sums d_keys;                 ///< Of the own shard.
  float* d_queries = nullptr;  ///< Of the own rows.
  std::vector<Sums> sums;      ///< On their way.
};

}  // namespace ring::cuda
