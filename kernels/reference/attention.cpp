#include "kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ring::reference {
namespace {

constexpr double kEmpty = -std::numeric_limits<double>::infinity();

// All heads of a tensor as fp64, (head, token, dim).
std::vector<double> widen(const Tensor& tensor, int64_t tokens, int heads, int dim) {
  std::vector<double> out;
  out.reserve(static_cast<size_t>(tokens * heads * dim));
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t token = 0; token < tokens; ++token) {
      for (int64_t d = 0; d < dim; ++d) out.push_back(tensor.at(token, head, d));
    }
  }
  return out;
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(double factor, const double* from, int64_t n, double* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

// K and V widened once; the softmax of single rows over them.
class Softmax {
 public:
  explicit Softmax(const Problem& problem)
      : problem_(problem),
        k_(widen(problem.k, problem.kv_rows, problem.kv_heads, problem.dim_qk)),
        v_(widen(problem.v, problem.kv_rows, problem.kv_heads, problem.dim_v)),
        weights_(static_cast<size_t>(problem.kv_rows)) {}

  int64_t kv_head(int64_t head) const { return head / (problem_.heads / problem_.kv_heads); }
  const double* key(int64_t kv_head, int64_t key) const {
    return k_.data() + (kv_head * problem_.kv_rows + key) * problem_.dim_qk;
  }
  const double* value(int64_t kv_head, int64_t key) const {
    return v_.data() + (kv_head * problem_.kv_rows + key) * problem_.dim_v;
  }
  std::vector<double> query(int64_t head, int64_t row) const {
    std::vector<double> q(static_cast<size_t>(problem_.dim_qk));
    for (int64_t d = 0; d < problem_.dim_qk; ++d) {
      q[static_cast<size_t>(d)] = problem_.q.at(row, head, d);
    }
    return q;
  }

  // The weights of one row (0 for keys it does not see); returns its lse.
  double weigh(int64_t head, int64_t row) {
    const std::vector<double> q = query(head, row);
    double top = kEmpty;
    for (int64_t j = 0; j < problem_.kv_rows; ++j) {
      const bool seen = !problem_.visible || problem_.visible(row, j);
      const double s =
          seen ? problem_.scale * dot(q.data(), key(kv_head(head), j), problem_.dim_qk) : kEmpty;
      weights_[static_cast<size_t>(j)] = s;
      top = std::max(top, s);
    }
    if (top == kEmpty) {
      std::fill(weights_.begin(), weights_.end(), 0.0);
      return kEmpty;
    }
    double sum = 0.0;
    for (double& w : weights_) sum += (w = std::exp(w - top));
    for (double& w : weights_) w /= sum;
    return top + std::log(sum);
  }
  const std::vector<double>& weights() const { return weights_; }

 private:
  const Problem& problem_;
  std::vector<double> k_, v_, weights_;
};

std::vector<int64_t> all_rows(int64_t rows) {
  std::vector<int64_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

// Gradient with respect to the scores of one row: w (dP - sum w dP), dP = dO . v.
std::vector<double> score_gradients(const Problem& problem, const Softmax& softmax, int64_t head,
                                    const double* d_out) {
  const std::vector<double>& weights = softmax.weights();
  std::vector<double> gradients(weights.size());
  double mean = 0.0;
  for (size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] == 0.0) continue;
    gradients[j] =
        dot(d_out, softmax.value(softmax.kv_head(head), static_cast<int64_t>(j)), problem.dim_v);
    mean += weights[j] * gradients[j];
  }
  for (size_t j = 0; j < weights.size(); ++j) gradients[j] = weights[j] * (gradients[j] - mean);
  return gradients;
}

// Where gradients are gathered; dk and dv are optional.
void add_row(const Problem& problem, Softmax& softmax, int64_t head, int64_t row,
             const Tensor& d_out, double* dq, Gradients* all) {
  softmax.weigh(head, row);
  std::vector<double> d_row(static_cast<size_t>(problem.dim_v));
  for (int64_t d = 0; d < problem.dim_v; ++d)
    d_row[static_cast<size_t>(d)] = d_out.at(row, head, d);
  const std::vector<double> ds = score_gradients(problem, softmax, head, d_row.data());
  const std::vector<double> q = softmax.query(head, row);
  const int64_t kv_head = softmax.kv_head(head);
  for (int64_t j = 0; j < problem.kv_rows; ++j) {
    const double weight = softmax.weights()[static_cast<size_t>(j)];
    if (weight == 0.0) continue;
    const double slope = problem.scale * ds[static_cast<size_t>(j)];
    add_scaled(slope, softmax.key(kv_head, j), problem.dim_qk, dq);
    if (all == nullptr) continue;
    const int64_t at = kv_head * problem.kv_rows + j;
    add_scaled(slope, q.data(), problem.dim_qk, all->dk.data() + at * problem.dim_qk);
    add_scaled(weight, d_row.data(), problem.dim_v, all->dv.data() + at * problem.dim_v);
  }
}

}  // namespace

double Tensor::at(int64_t token, int64_t head, int64_t dim) const {
  const int64_t i = token * token_stride + head * head_stride + dim;
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data)[i];
    case DType::kBF16:
      return bf16_value(static_cast<const uint16_t*>(data)[i]);
    case DType::kF16:
      return f16_value(static_cast<const uint16_t*>(data)[i]);
  }
  return 0.0;
}

Output attend(const Problem& problem) { return attend_rows(problem, all_rows(problem.q_rows)); }

Output attend_rows(const Problem& problem, std::span<const int64_t> rows) {
  Softmax softmax(problem);
  Output result;
  result.out.assign(rows.size() * static_cast<size_t>(problem.heads * problem.dim_v), 0.0);
  double* out = result.out.data();
  for (int64_t head = 0; head < problem.heads; ++head) {
    for (const int64_t row : rows) {
      result.lse.push_back(softmax.weigh(head, row));
      for (int64_t j = 0; j < problem.kv_rows; ++j) {
        const double weight = softmax.weights()[static_cast<size_t>(j)];
        if (weight == 0.0) continue;
        add_scaled(weight, softmax.value(softmax.kv_head(head), j), problem.dim_v, out);
      }
      out += problem.dim_v;
    }
  }
  return result;
}

Gradients attend_backward(const Problem& problem, const Tensor& d_out) {
  Softmax softmax(problem);
  Gradients all;
  all.dq.assign(static_cast<size_t>(problem.heads * problem.q_rows * problem.dim_qk), 0.0);
  all.dk.assign(static_cast<size_t>(problem.kv_heads * problem.kv_rows * problem.dim_qk), 0.0);
  all.dv.assign(static_cast<size_t>(problem.kv_heads * problem.kv_rows * problem.dim_v), 0.0);
  double* dq = all.dq.data();
  for (int64_t head = 0; head < problem.heads; ++head) {
    for (int64_t row = 0; row < problem.q_rows; ++row, dq += problem.dim_qk) {
      add_row(problem, softmax, head, row, d_out, dq, &all);
    }
  }
  return all;
}

Gradients key_gradients(const Problem& problem, const Tensor& d_out, std::span<const double> lse,
                        std::span<const double> delta, std::span<const int64_t> keys) {
  Gradients some;
  const auto count = static_cast<int64_t>(keys.size());
  some.dk.assign(static_cast<size_t>(problem.kv_heads * count * problem.dim_qk), 0.0);
  some.dv.assign(static_cast<size_t>(problem.kv_heads * count * problem.dim_v), 0.0);
  for (int64_t head = 0; head < problem.heads; ++head) {
    const int64_t kv_head = head / (problem.heads / problem.kv_heads);
    for (int64_t row = 0; row < problem.q_rows; ++row) {
      const auto at = static_cast<size_t>(head * problem.q_rows + row);
      if (lse[at] == kEmpty) continue;
      for (int64_t j = 0; j < count; ++j) {
        const int64_t key = keys[static_cast<size_t>(j)];
        if (problem.visible && !problem.visible(row, key)) continue;
        double score = 0.0, slope = 0.0;
        for (int64_t d = 0; d < problem.dim_qk; ++d)
          score += problem.q.at(row, head, d) * problem.k.at(key, kv_head, d);
        for (int64_t d = 0; d < problem.dim_v; ++d)
          slope += d_out.at(row, head, d) * problem.v.at(key, kv_head, d);
        const double weight = std::exp(problem.scale * score - lse[at]);
        const double factor = problem.scale * weight * (slope - delta[at]);
        double* const dk = some.dk.data() + (kv_head * count + j) * problem.dim_qk;
        double* const dv = some.dv.data() + (kv_head * count + j) * problem.dim_v;
        for (int64_t d = 0; d < problem.dim_qk; ++d) dk[d] += factor * problem.q.at(row, head, d);
        for (int64_t d = 0; d < problem.dim_v; ++d) dv[d] += weight * d_out.at(row, head, d);
      }
    }
  }
  return some;
}

std::vector<double> query_gradients(const Problem& problem, const Tensor& d_out,
                                    std::span<const int64_t> rows) {
  Softmax softmax(problem);
  std::vector<double> result(rows.size() * static_cast<size_t>(problem.heads * problem.dim_qk));
  double* dq = result.data();
  for (int64_t head = 0; head < problem.heads; ++head) {
    for (const int64_t row : rows) {
      add_row(problem, softmax, head, row, d_out, dq, nullptr);
      dq += problem.dim_qk;
    }
  }
  return result;
}

}  // namespace ring::reference
