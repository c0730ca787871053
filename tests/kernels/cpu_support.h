// Random attention problems in any layout, and the error bounds of docs/numerics.md.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/attend.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/attention.h"

namespace ring::test {

// A (token, head, dim) tensor with gaps between rows and heads; the gaps hold NaN.
class Tensor {
 public:
  enum class Layout { kTokenMajor, kHeadMajor };

  Tensor(DType dtype, int64_t tokens, int heads, int dim, Layout layout, int64_t gap);

  void fill_normal(std::mt19937_64& random, double deviation);
  void set(int64_t token, int64_t head, int64_t dim, double value);
  double get(int64_t token, int64_t head, int64_t dim) const {
    return oracle().at(token, head, dim);
  }
  cpu::ConstView view() const { return {data(), token_stride_, head_stride_}; }
  cpu::View writable() { return {bytes_.data() + offset_bytes_, token_stride_, head_stride_}; }
  reference::Tensor oracle() const { return {data(), dtype_, token_stride_, head_stride_}; }

 private:
  const void* data() const { return bytes_.data() + offset_bytes_; }

  DType dtype_;
  int64_t tokens_;
  int heads_, dim_;
  int64_t token_stride_, head_stride_;
  size_t offset_bytes_;
  std::vector<std::byte> bytes_;
};

// State arrays of one call.
struct State {
  explicit State(const cpu::AttendShape& shape);
  cpu::AttendState view() { return {u.data(), m.data(), l.data()}; }
  bool operator==(const State&) const = default;

  std::vector<float> u, m, l;
};

// Q, K, V and the spans of one attention call.
struct Case {
  cpu::AttendShape shape;
  Tensor q, k, v;
  std::vector<cpu::KeySpan> spans;  // empty: every key visible

  Case(const cpu::AttendShape& shape, uint64_t seed, double deviation = 1.0,
       Tensor::Layout layout = Tensor::Layout::kTokenMajor, int64_t gap = 0);

  const cpu::KeySpan* span_data() const { return spans.empty() ? nullptr : spans.data(); }
  void make_causal(int64_t offset);
  void make_random_spans(uint64_t seed);
  reference::Problem oracle() const;
};

// One attend call from an empty state.
State run(const Case& c, cpu::Workspace& workspace);

// The first violation of the derived bound by the finalised state, or nothing.
std::optional<std::string> first_error(const Case& c, State& state);

// As above for a result that some kernel has made; `weight_rounding` is the relative error that it
// adds to the weights of the values, `least_weight` the absolute one.
std::optional<std::string> first_error(const Case& c, const Tensor& out,
                                       const std::vector<float>& lse, double weight_rounding,
                                       double least_weight);

// Heads of any dims with the usual scale.
cpu::AttendShape shape_of(int64_t q_rows, int64_t kv_rows, int heads, int kv_heads, int dim_qk,
                          int dim_v, DType dtype = DType::kF32);

// The rows of a tensor of `dtype` from `first` on.
cpu::ConstView rows_from(DType dtype, cpu::ConstView view, int64_t first);

// Tests that run on one instruction set each, its name the parameter.
class OnIsa : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { cpu::force_isa(GetParam()); }
  void TearDown() override { cpu::force_isa(""); }
  // Of bf16 where the products of bf16 tensors are what the instruction set is about.
  static cpu::AttendShape shape_of(int64_t q_rows, int64_t kv_rows, int heads, int kv_heads,
                                   int dim_qk, int dim_v) {
    const DType dtype = cpu::uses_bf16_products() ? DType::kBF16 : DType::kF32;
    return test::shape_of(q_rows, kv_rows, heads, kv_heads, dim_qk, dim_v, dtype);
  }
  cpu::Workspace workspace_;
};

// Restricts the kernels to one instruction set within a scope.
class ScopedIsa {
 public:
  explicit ScopedIsa(const std::string& isa) { cpu::force_isa(isa); }
  ~ScopedIsa() { cpu::force_isa(""); }
};

}  // namespace ring::test
