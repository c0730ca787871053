// What the tests of the backward pass share: gradients of a run and of the fp64 oracle.
#pragma once

#include "tests/kernels/executor_fixture.h"

namespace ring::testing_support {

/// dQ (batch, token, head, dim), dK and dV (batch, token, kv_head, dim) in global order.
struct AllGradients {
  std::vector<double> dq, dk, dv;
};

inline AllGradients gather_gradients(const CpuExecutor& executor, const Problem& problem) {
  AllGradients all;
  const auto append = [](std::vector<double>& to, std::span<const float> from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    for (int64_t position = 0; position < problem.seq_len(); ++position) {
      append(all.dq, executor.query_gradients(batch, position));
      append(all.dk, executor.key_gradients(batch, position));
      append(all.dv, executor.value_gradients(batch, position));
    }
  }
  return all;
}

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

inline AllGradients oracle_gradients(const Problem& problem, const DataSource& data) {
  AllGradients all;
  const int64_t tokens = problem.seq_len(), h = problem.heads, kv = problem.kv_heads;
  const int64_t d = problem.head_dim, dv = problem.head_dim_v;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const auto q = stored(problem, data, Tensor::kQuery, batch, h * d);
    const auto k = stored(problem, data, Tensor::kKey, batch, kv * d);
    const auto v = stored(problem, data, Tensor::kValue, batch, kv * dv);
    const auto d_out = stored(problem, data, Tensor::kOutputGradient, batch, h * dv);
    reference::Problem plain;
    plain.q_rows = plain.kv_rows = tokens;
    plain.heads = static_cast<int>(h);
    plain.kv_heads = static_cast<int>(kv);
    plain.dim_qk = static_cast<int>(d);
    plain.dim_v = static_cast<int>(dv);
    plain.scale = static_cast<double>(problem.softmax_scale());
    plain.q = {q.data(), problem.dtype, h * d, d};
    plain.k = {k.data(), problem.dtype, kv * d, d};
    plain.v = {v.data(), problem.dtype, kv * dv, dv};
    plain.visible = [&](int64_t row, int64_t key) {
      const KeyInterval seen = problem.mask.visible(row);
      return key >= seen.begin && key < seen.end;
    };
    const reference::Gradients exact =
        reference::attend_backward(plain, {d_out.data(), problem.dtype, h * dv, dv});
    append_by_token(exact.dq, tokens, h, d, all.dq);
    append_by_token(exact.dk, tokens, kv, d, all.dk);
    append_by_token(exact.dv, tokens, kv, dv, all.dv);
  }
  return all;
}

inline AllGradients run_gradients(const Problem& problem, const Tuning& tuning,
                                  const DataSource& data) {
  const RingProgram program = plan(problem, tuning);
  CpuExecutor executor(program, data);
  executor.run();
  return gather_gradients(executor, problem);
}

}  // namespace ring::testing_support
