// What the tests of the backward pass share: gradients of a run and of the fp64 oracle.
#pragma once

#include "tests/kernels/executor_fixture.h"

namespace ring::testing_support {

/// dQ (batch, token, head, dim), dK and dV (batch, token, kv_head, dim) in global order.
struct AllGradients {
  std::vector<double> dq, dk, dv;
};

inline AllGradients gather_gradients(const Executor& executor, const Problem& problem) {
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

inline AllGradients oracle_gradients(const Problem& problem, const DataSource& data) {
  AllGradients all;
  const int64_t tokens = problem.seq_len(), h = problem.heads, kv = problem.kv_heads;
  const int64_t d = problem.head_dim, dv = problem.head_dim_v;
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    const auto d_out = stored(problem, data, Tensor::kOutputGradient, batch, h * dv);
    StoredProblem element(problem, data, batch);
    element.plain().scale = static_cast<double>(problem.softmax_scale());
    const reference::Gradients exact =
        reference::attend_backward(element.plain(), {d_out.data(), problem.dtype, h * dv, dv});
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

/// Relative RMS of each; NaN fails too.
inline void expect_gradients(const AllGradients& actual, const AllGradients& exact,
                             double scores_tolerance, double values_tolerance) {
  EXPECT_LE(relative_rms(actual.dq, exact.dq), scores_tolerance);
  EXPECT_LE(relative_rms(actual.dk, exact.dk), scores_tolerance);
  EXPECT_LE(relative_rms(actual.dv, exact.dv), values_tolerance);
}

}  // namespace ring::testing_support
