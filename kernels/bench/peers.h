// Attention as a chain of library calls: matrix product, softmax, matrix product, block by block.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/bench/problem.h"

namespace ring::bench {

// fp32 C (m, n) = A (m, k) * B or B^T + beta C, row-major, leading dimensions given. A and B are of
// the dtype of the chain.
using Gemm =
    std::function<void(bool transpose_b, int64_t m, int64_t n, int64_t k, const void* a,
                       int64_t lda, const void* b, int64_t ldb, float beta, float* c, int64_t ldc)>;

struct Peer {
  std::string name;
  Gemm gemm;
  int64_t q_block = 0, k_block = 0;
};

// Of every library that multiplies matrices of `dtype` (fp32 or bf16) on this CPU, a chain with
// small and one with large blocks.
std::vector<Peer> peers(DType dtype);

// One head of attention by `peer`, of the dtype of `problem`, into out (row, dim_v). The online
// softmax between the products is the vector exp2 of our own kernels, so the libraries lose nothing
// there; for bf16 it leaves the weights rounded to bf16.
void run_peer(const Peer& peer, const Problem& problem, float* out);

}  // namespace ring::bench
