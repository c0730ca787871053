// Problems of the backward pass and the error bounds of docs/numerics.md.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/attend_backward.h"
#include "tests/kernels/cpu_support.h"

namespace ring::test {

// A case with what the backward pass needs from the forward pass.
struct Backward {
  Case c;
  Tensor d_out;
  std::vector<float> lse, delta;

  Backward(Case given, uint64_t seed, cpu::Workspace& workspace)
      : c(std::move(given)),
        d_out(c.shape.dtype, c.shape.q_rows, c.shape.heads, c.shape.dim_v,
              Tensor::Layout::kTokenMajor, 8) {
    std::mt19937_64 random(seed);
    d_out.fill_normal(random, 1.0);
    State state = run(c, workspace);
    Tensor out(c.shape.dtype, c.shape.q_rows, c.shape.heads, c.shape.dim_v,
               Tensor::Layout::kHeadMajor, 1);
    lse.resize(state.m.size());
    delta.resize(state.m.size());
    cpu::finalize(c.shape, state.view(), out.writable(), lse.data());
    cpu::compute_delta(c.shape, out.view(), d_out.view(), delta.data());
  }
  cpu::BackwardInput input() const {
    return {c.q.view(), c.k.view(), c.v.view(), d_out.view(), lse.data(), delta.data(), {}};
  }
};

struct Sums {
  explicit Sums(const cpu::AttendShape& s, float start = 0.0F)
      : dq(static_cast<size_t>(s.heads * s.q_rows * s.dim_qk), start),
        dk(static_cast<size_t>(s.kv_heads * s.kv_rows * s.dim_qk), start),
        dv(static_cast<size_t>(s.kv_heads * s.kv_rows * s.dim_v), start) {}
  cpu::BackwardOutput view() { return {dq.data(), dk.data(), dv.data(), {}, {}, {}}; }
  bool operator==(const Sums&) const = default;
  std::vector<float> dq, dk, dv;
};

// Sums over all terms of |term| times the relative error a term may have (docs/numerics.md).
struct Bounds {
  std::vector<double> dq, dk, dv;
};

// `rounding` is the relative error with which P and dS are stored, `least` the absolute one.
inline Bounds bounds_of(const Backward& b, double rounding = 0.0, double least = 0.0) {
  constexpr double kU = 0x1p-24;
  const cpu::AttendShape& s = b.c.shape;
  const reference::Problem p = b.c.oracle();
  const reference::Output forward = reference::attend(p);
  const reference::Tensor d_out = b.d_out.oracle();
  const double round_out = s.dtype == DType::kF32 ? kU : s.dtype == DType::kBF16 ? 0x1p-8 : 0x1p-11;
  // Rounded weights make an output, and delta with it, as wrong again as rounding it does.
  const double delta_error = (cpu::uses_bf16_products(s.dtype) ? 2.02 : 1.0) * round_out;
  const Sums sizes(s);
  Bounds bounds;
  bounds.dq.resize(sizes.dq.size());
  bounds.dk.resize(sizes.dk.size());
  bounds.dv.resize(sizes.dv.size());
  const double terms = static_cast<double>(s.kv_rows + s.q_rows * s.heads) + 32.0;
  for (int64_t h = 0; h < s.heads; ++h) {
    const int64_t kv = h / (s.heads / s.kv_heads);
    for (int64_t i = 0; i < s.q_rows; ++i) {
      double g = 0.0;          // max over keys of sum |d_out v|
      double score_max = 0.0;  // max over keys of |scale| sum |q k|
      std::vector<double> weights(static_cast<size_t>(s.kv_rows));
      for (int64_t j = 0; j < s.kv_rows; ++j) {
        if (p.visible && !p.visible(i, j)) continue;
        double score = 0.0;
        double magnitude = 0.0;
        double g_j = 0.0;
        for (int64_t d = 0; d < s.dim_qk; ++d) {
          const double product = p.scale * p.q.at(i, h, d) * p.k.at(j, kv, d);
          score += product;
          magnitude += std::fabs(product);
        }
        for (int64_t d = 0; d < s.dim_v; ++d) {
          g_j += std::fabs(d_out.at(i, h, d) * p.v.at(j, kv, d));
        }
        g = std::max(g, g_j);
        score_max = std::max(score_max, magnitude);
        weights[static_cast<size_t>(j)] =
            std::exp(score - forward.lse[static_cast<size_t>(h * s.q_rows + i)]);
      }
      const double weight_error = kU * (2.0 * (s.dim_qk + 8) * score_max + terms) + 6e-7;
      const double slope_error =
          g * (4.0 * weight_error + 4.0 * kU * (s.dim_v + terms) + delta_error + 2.02 * rounding);
      for (int64_t j = 0; j < s.kv_rows; ++j) {
        const double w = weights[static_cast<size_t>(j)];
        for (int64_t d = 0; d < s.dim_qk; ++d) {
          const double f = (w * slope_error + least) * std::fabs(p.scale);
          bounds.dq[static_cast<size_t>((h * s.q_rows + i) * s.dim_qk + d)] +=
              f * std::fabs(p.k.at(j, kv, d));
          bounds.dk[static_cast<size_t>((kv * s.kv_rows + j) * s.dim_qk + d)] +=
              f * std::fabs(p.q.at(i, h, d));
        }
        for (int64_t d = 0; d < s.dim_v; ++d) {
          bounds.dv[static_cast<size_t>((kv * s.kv_rows + j) * s.dim_v + d)] +=
              (w * (weight_error + kU * terms + 1.01 * rounding) + least) *
              std::fabs(d_out.at(i, h, d));
        }
      }
    }
  }
  return bounds;
}

inline std::optional<std::string> first_difference(const char* name, const std::vector<float>& have,
                                                   const std::vector<double>& want,
                                                   const std::vector<double>& bound) {
  for (size_t i = 0; i < have.size(); ++i) {
    // 1e-28: weights below 2^-100 count as 2^-100.
    if (!(std::fabs(have[i] - want[i]) <= bound[i] + 1e-28)) {
      return fmt::format("{}[{}]: {} instead of {}, bound {}", name, i, have[i], want[i], bound[i]);
    }
  }
  return std::nullopt;
}

}  // namespace ring::test
