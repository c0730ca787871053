// Attention as a chain of library calls: matrix product, softmax, matrix product, block by block.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/bench/problem.h"

namespace ring::bench {

// C (m, n) = A (m, k) * B or B^T + beta C, row-major, leading dimensions given.
using Gemm = void (*)(bool transpose_b, int64_t m, int64_t n, int64_t k, const float* a,
                      int64_t lda, const float* b, int64_t ldb, float beta, float* c, int64_t ldc);

struct Peer {
  std::string name;
  Gemm gemm = nullptr;
  int64_t q_block = 0, k_block = 0;
};

// Of every library found, a chain with small and one with large blocks.
std::vector<Peer> peers();

// One head of attention by `peer` into out (row, dim_v). The online softmax between the products is
// the vector exp2 of our own kernels, so the libraries lose nothing there.
void run_peer(const Peer& peer, const Problem& problem, float* out);

}  // namespace ring::bench
