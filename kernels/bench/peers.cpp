#include "kernels/bench/peers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "kernels/bench/peer_matmul.h"
#include "kernels/cpu/vector_math.h"

#ifdef RING_BENCH_OPENBLAS
#include <cblas.h>
#endif
#ifdef RING_BENCH_ONEDNN
#include <dnnl.h>
#endif

namespace ring::bench {
namespace {

constexpr float kLog2e = 1.44269504F;

#ifdef RING_BENCH_OPENBLAS
void gemm_openblas(bool transpose_b, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
                   const void* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans,
              static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 1.0F,
              static_cast<const float*>(a), static_cast<int>(lda), static_cast<const float*>(b),
              static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
}
#endif

#ifdef RING_BENCH_ONEDNN
void gemm_onednn(bool transpose_b, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
                 const void* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  dnnl_sgemm('N', transpose_b ? 'T' : 'N', m, n, k, 1.0F, static_cast<const float*>(a), lda,
             static_cast<const float*>(b), ldb, beta, c, ldc);
}
#endif

// State of the rows of one query block.
struct Rows {
  std::vector<float> scores, top, sum;
  std::vector<uint16_t> weights;  // bf16
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define RING_BENCH_VECTOR \
  [[gnu::target_clones("default", "avx2", "avx512f"), gnu::optimize("O3,fast-math")]]
#else
#define RING_BENCH_VECTOR
#endif

RING_BENCH_VECTOR float peak_of(const float* values, int64_t n, float start) {
  float peak = start;
  for (int64_t j = 0; j < n; ++j) peak = values[j] > peak ? values[j] : peak;
  return peak;
}

RING_BENCH_VECTOR void scale_shift(float* values, int64_t n, float slope, float shift) {
  for (int64_t j = 0; j < n; ++j) values[j] = values[j] * slope - shift;
}

RING_BENCH_VECTOR float sum_of(const float* values, int64_t n) {
  float sum = 0.0F;
  for (int64_t j = 0; j < n; ++j) sum += values[j];
  return sum;
}

// Rounded to the nearest bf16.
RING_BENCH_VECTOR void narrow(const float* values, int64_t n, uint16_t* bf16) {
  for (int64_t j = 0; j < n; ++j) {
    bf16[j] = static_cast<uint16_t>((std::bit_cast<uint32_t>(values[j]) + 0x8000U) >> 16);
  }
}

// Scores of one row into weights; rescales the row's sums. Keys from `visible` on are hidden.
void softmax_row(float* scores, int64_t keys, int64_t visible, float slope, float* out, int dim,
                 float& top, float& sum) {
  visible = std::clamp<int64_t>(visible, 0, keys);
  const float peak = peak_of(scores, visible, top / slope) * slope;
  scale_shift(scores, visible, slope, peak);
  cpu::exp2_clamped(scores, visible, scores);
  std::fill(scores + visible, scores + keys, 0.0F);
  if (peak != top) {
    const float keep = std::exp2(top - peak);
    scale_shift(out, dim, keep, 0.0F);
    sum *= keep;
    top = peak;
  }
  sum += sum_of(scores, visible);
}

}  // namespace

std::vector<Peer> peers(DType dtype) {
  std::vector<Peer> all;
  const auto add = [&all](const char* name, const Gemm& gemm) {
    all.push_back({name, gemm, 256, 512});
    all.push_back({name, gemm, 1024, 512});
  };
  if (dtype == DType::kBF16) {
    if (const Gemm gemm = onednn_bf16_gemm()) add("oneDNN", gemm);
    return all;
  }
#ifdef RING_BENCH_OPENBLAS
  add("OpenBLAS", gemm_openblas);
#endif
#ifdef RING_BENCH_ONEDNN
  add("oneDNN", gemm_onednn);
#endif
  return all;
}

void run_peer(const Peer& peer, const Problem& problem, float* out) {
  const auto& s = problem.shape;
  const bool narrow_weights = s.dtype == DType::kBF16;
  const float slope = s.scale * kLog2e;
  const auto row_of = [&s](const cpu::ConstView& view, int64_t row) {
    return static_cast<const std::byte*>(view.data) + row * view.token_stride * size_bytes(s.dtype);
  };
  Rows rows;
  rows.scores.resize(static_cast<size_t>(peer.q_block * peer.k_block));
  if (narrow_weights) rows.weights.resize(rows.scores.size());
  for (int64_t q = 0; q < s.q_rows; q += peer.q_block) {
    const int64_t m = std::min(peer.q_block, s.q_rows - q);
    float* block_out = out + q * s.dim_v;
    std::fill_n(block_out, m * s.dim_v, 0.0F);
    rows.top.assign(static_cast<size_t>(m), -1e30F);
    rows.sum.assign(static_cast<size_t>(m), 0.0F);
    const int64_t last = problem.causal() ? std::min(s.kv_rows, q + m) : s.kv_rows;
    for (int64_t k = 0; k < last; k += peer.k_block) {
      const int64_t n = std::min(peer.k_block, last - k);
      float* scores = rows.scores.data();
      peer.gemm(true, m, n, s.dim_qk, row_of(problem.q_view(), q), s.dim_qk,
                row_of(problem.k_view(), k), s.dim_qk, 0.0F, scores, n);
      for (int64_t i = 0; i < m; ++i) {
        const int64_t visible = problem.causal() ? q + i + 1 - k : n;
        softmax_row(scores + i * n, n, visible, slope, block_out + i * s.dim_v, s.dim_v,
                    rows.top[static_cast<size_t>(i)], rows.sum[static_cast<size_t>(i)]);
        if (narrow_weights) narrow(scores + i * n, n, rows.weights.data() + i * n);
      }
      const void* weights = scores;
      if (narrow_weights) weights = rows.weights.data();
      peer.gemm(false, m, s.dim_v, n, weights, n, row_of(problem.v_view(), k), s.dim_v, 1.0F,
                block_out, s.dim_v);
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int d = 0; d < s.dim_v; ++d)
        block_out[i * s.dim_v + d] /= rows.sum[static_cast<size_t>(i)];
    }
  }
}

}  // namespace ring::bench
