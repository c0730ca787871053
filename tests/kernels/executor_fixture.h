// What the executor tests share: running a problem, gathering its output, and the fp64 oracle.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/strategy.h"
#include "kernels/data.h"
#include "kernels/executor.h"
#include "kernels/reference/attention.h"

namespace ring::testing_support {

/// Data from a function of (tensor, batch, position, head * dim + d).
class FunctionData final : public DataSource {
 public:
  using Value = std::function<float(Tensor, int64_t batch, int64_t position, int64_t index)>;
  explicit FunctionData(Value value) : value_(std::move(value)) {}
  void fill(Tensor tensor, int64_t batch, int64_t position,
            std::span<float> values) const override {
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = value_(tensor, batch, position, static_cast<int64_t>(i));
  }

 private:
  Value value_;
};

/// Scores of zero (K = 0) and V = the token's position: attention is the mean visible position.
inline FunctionData mean_position_data() {
  return FunctionData([](Tensor tensor, int64_t, int64_t position, int64_t) {
    if (tensor == Tensor::kKey) return 0.0F;
    return tensor == Tensor::kValue ? static_cast<float>(position) : 1.0F;
  });
}

/// out (batch, token, head, dim_v) and lse (batch, token, head) in global order.
struct Output {
  std::vector<double> out, lse;
};

inline Output gather(const Executor& executor, const Problem& problem) {
  Output all;
  std::vector<float> out(static_cast<size_t>(problem.heads * problem.head_dim_v));
  std::vector<float> lse(static_cast<size_t>(problem.heads));
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    for (int64_t position = 0; position < problem.seq_len(); ++position) {
      executor.read_output(batch, position, out, lse);
      all.out.insert(all.out.end(), out.begin(), out.end());
      all.lse.insert(all.lse.end(), lse.begin(), lse.end());
    }
  }
  return all;
}

inline std::vector<std::byte> gather_bytes(const CpuExecutor& executor, const Problem& problem) {
  std::vector<std::byte> all;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    for (int64_t position = 0; position < problem.seq_len(); ++position) {
      const auto bytes = executor.output_bytes(batch, position);
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  }
  return all;
}

inline Output run_once(const Problem& problem, const Tuning& tuning, const DataSource& data) {
  const RingProgram program = plan(problem, tuning);
  CpuExecutor executor(program, data);
  executor.run();
  return gather(executor, problem);
}

/// The values of a tensor as they are stored in the model dtype, (token, head, dim).
inline std::vector<std::byte> stored(const Problem& problem, const DataSource& data, Tensor tensor,
                                     int64_t batch, int64_t width) {
  const int64_t element = size_bytes(problem.dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(problem.seq_len() * width * element));
  std::vector<float> row(static_cast<size_t>(width));
  for (int64_t token = 0; token < problem.seq_len(); ++token) {
    data.fill(tensor, batch, token, row);
    store_elements(problem.dtype, row, bytes.data() + token * width * element);
  }
  return bytes;
}

/// One batch element as the oracle takes it, from the values as stored.
class StoredProblem {
 public:
  /// `problem` must outlive this.
  StoredProblem(const Problem& problem, const DataSource& data, int64_t batch)
      : q_(stored(problem, data, Tensor::kQuery, batch, problem.heads * problem.head_dim)),
        k_(stored(problem, data, Tensor::kKey, batch, problem.kv_heads * problem.head_dim)),
        v_(stored(problem, data, Tensor::kValue, batch, problem.kv_heads * problem.head_dim_v)) {
    const int64_t h = problem.heads, kv = problem.kv_heads;
    const int64_t d = problem.head_dim, dv = problem.head_dim_v;
    plain_.q_rows = plain_.kv_rows = problem.seq_len();
    plain_.heads = static_cast<int>(h);
    plain_.kv_heads = static_cast<int>(kv);
    plain_.dim_qk = static_cast<int>(d);
    plain_.dim_v = static_cast<int>(dv);
    plain_.scale = problem.scale != 0 ? problem.scale : 1.0 / std::sqrt(static_cast<double>(d));
    plain_.q = {q_.data(), problem.dtype, h * d, d};
    plain_.k = {k_.data(), problem.dtype, kv * d, d};
    plain_.v = {v_.data(), problem.dtype, kv * dv, dv};
    plain_.visible = [&problem](int64_t row, int64_t key) {
      const KeyInterval seen = problem.mask.visible(row);
      return key >= seen.begin && key < seen.end;
    };
  }
  StoredProblem(const StoredProblem&) = delete;  // `plain_` refers to the values.
  StoredProblem& operator=(const StoredProblem&) = delete;

  reference::Problem& plain() { return plain_; }

 private:
  std::vector<std::byte> q_, k_, v_;
  reference::Problem plain_;
};

/// From (head, token, dim) to (token, head, dim).
inline void append_by_token(const std::vector<double>& from, int64_t tokens, int64_t heads,
                            int64_t dim, std::vector<double>& to) {
  for (int64_t token = 0; token < tokens; ++token) {
    for (int64_t head = 0; head < heads; ++head) {
      const auto at = from.begin() + (head * tokens + token) * dim;
      to.insert(to.end(), at, at + dim);
    }
  }
}

/// The same attention by the oracle, from the values as stored.
inline Output oracle(const Problem& problem, const DataSource& data) {
  Output all;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const reference::Output exact = reference::attend(StoredProblem(problem, data, batch).plain());
    append_by_token(exact.out, problem.seq_len(), problem.heads, problem.head_dim_v, all.out);
    append_by_token(exact.lse, problem.seq_len(), problem.heads, 1, all.lse);
  }
  return all;
}

inline double rms(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

/// RMS of the difference relative to the RMS of `exact`.
inline double relative_rms(std::span<const double> actual, std::span<const double> exact) {
  std::vector<double> difference(actual.size());
  for (size_t i = 0; i < actual.size(); ++i) difference[i] = actual[i] - exact[i];
  return rms(difference) / rms(exact);
}

/// Outputs by their relative RMS error, below `rms_tolerance`; log-sum-exps one by one, within
/// `lse_tolerance`, and exactly where a row sees no key.
inline void expect_output(const Output& actual, const Output& exact, double rms_tolerance,
                          double lse_tolerance) {
  EXPECT_LT(relative_rms(actual.out, exact.out), rms_tolerance);
  for (size_t i = 0; i < exact.lse.size(); ++i) {
    if (std::isinf(exact.lse[i])) {
      EXPECT_EQ(actual.lse[i], exact.lse[i]);
    } else {
      EXPECT_NEAR(actual.lse[i], exact.lse[i], lse_tolerance);
    }
  }
}

}  // namespace ring::testing_support
