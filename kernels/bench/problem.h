// A benchmark problem: data, and the check that a kernel computes it rightly before it is timed.
#pragma once

#include <string>
#include <vector>

#include "kernels/cpu/attend.h"
#include "kernels/cpu/attend_backward.h"

namespace ring::bench {

// One set of heads, fp32, (token, head, dim) contiguous; narrow copies where the dtype is 16 bits.
struct Problem {
  Problem(const cpu::AttendShape& shape, bool causal);

  bool causal() const { return !spans.empty(); }
  const cpu::KeySpan* span_data() const { return causal() ? spans.data() : nullptr; }
  // 4 S S D per head for equal head dims, of the visible half where causal.
  double forward_flops() const;
  // Q, K, V and output once.
  double bytes() const;
  std::string name() const;

  cpu::ConstView view(const std::vector<float>& wide, const std::vector<uint16_t>& narrow,
                      int heads, int dim) const;
  cpu::ConstView q_view() const { return view(q, q16, shape.heads, shape.dim_qk); }
  cpu::ConstView k_view() const { return view(k, k16, shape.kv_heads, shape.dim_qk); }
  cpu::ConstView d_out_view() const { return view(d_out, d_out16, shape.heads, shape.dim_v); }
  cpu::ConstView v_view() const { return view(v, v16, shape.kv_heads, shape.dim_v); }

  cpu::AttendShape shape;
  std::vector<float> q, k, v, d_out;
  std::vector<uint16_t> q16, k16, v16, d_out16;
  std::vector<cpu::KeySpan> spans;

  // Results: state, then dq, dk, dv.
  std::vector<float> u, m, l, lse, delta, dq, dk, dv;
  cpu::AttendState state() { return {u.data(), m.data(), l.data()}; }
  void reset();
  void prepare_backward(cpu::Workspace& workspace);
  cpu::BackwardInput backward_input() const;
  cpu::BackwardOutput backward_output() { return {dq.data(), dk.data(), dv.data()}; }
};

// Throw Error(kWrongResult) where sampled rows differ from the fp64 oracle by more than a generous
// bound (the tests hold the derived ones).
void expect_forward(Problem& problem);
void expect_backward(const Problem& problem);
void expect_rows(const Problem& problem, const std::vector<float>& out, const std::string& who);

}  // namespace ring::bench
