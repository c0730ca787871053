// The backward kernels of GPUs on the host executor, against the fp64 oracle.
#include "kernels/cuda/backward.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <type_traits>

#include "kernels/cuda/state_kernels.h"
#include "kernels/simt/host_lane.h"
#include "tests/kernels/backward_support.h"
#include "tests/kernels/gpu_support.h"

namespace ring::test {
namespace {

using cpu::AttendShape;
using simt::Bf16, simt::F16, simt::HostLane;

using B64 = cuda::BackwardConfig<Bf16, 64, 64, 32, 32, 2>;
using B64Half = cuda::BackwardConfig<F16, 64, 64, 32, 32, 2>;
using B96 = cuda::BackwardConfig<Bf16, 96, 96, 64, 64, 4>;
using B128 = cuda::BackwardConfig<Bf16, 128, 128, 64, 64, 4>;
using B192 = cuda::BackwardConfig<Bf16, 192, 128, 32, 32, 2>;
using B256 = cuda::BackwardConfig<Bf16, 256, 256, 32, 32, 2, 2>;

template <class Config>
AttendShape shape_of(int64_t q_rows, int64_t kv_rows, int heads = 1, int kv_heads = 1) {
  return {q_rows,
          kv_rows,
          heads,
          kv_heads,
          Config::kDimQk,
          Config::kDimV,
          std::is_same_v<typename Config::Element, F16> ? DType::kF16 : DType::kBF16,
          static_cast<float>(1.0 / std::sqrt(static_cast<double>(Config::kDimQk)))};
}

cuda::ConstTensor view_of(const Tensor& tensor) {
  const cpu::ConstView view = tensor.view();
  return {static_cast<const uint16_t*>(view.data), 0, view.token_stride, view.head_stride};
}

cuda::BackwardParams params_of(const Backward& b, Sums& sums) {
  const AttendShape& shape = b.c.shape;
  cuda::BackwardParams p;
  p.q = view_of(b.c.q);
  p.k = view_of(b.c.k);
  p.v = view_of(b.c.v);
  p.d_out = view_of(b.d_out);
  p.lse = b.lse.data();
  p.delta = b.delta.data();
  p.dq = sums.dq.data();
  p.dk = sums.dk.data();
  p.dv = sums.dv.data();
  p.row_head_stride = shape.q_rows;
  p.key_head_stride = shape.kv_rows;
  p.spans = reinterpret_cast<const cuda::KeyRange*>(b.c.span_data());
  p.q_rows = static_cast<int32_t>(shape.q_rows);
  p.kv_rows = static_cast<int32_t>(shape.kv_rows);
  p.group = shape.heads / shape.kv_heads;
  p.scale = shape.scale;
  return p;
}

// Both kernels; what they counted together.
template <class Config>
simt::Counters launch_backward(const Backward& b, Sums& sums, uint64_t seed,
                               const simt::Sabotage& sabotage = {}) {
  const cuda::BackwardParams p = params_of(b, sums);
  simt::LaunchOptions options;
  options.seed = seed;
  options.sabotage = sabotage;
  options.shape = cuda::backward_rows_shape<Config>(p, b.c.shape.heads, 1);
  simt::Counters rows =
      simt::launch(options, [&](HostLane& lane) { cuda::BackwardRows<Config>::run(lane, p); });
  options.shape = cuda::backward_keys_shape<Config>(p, b.c.shape.kv_heads, 1);
  const simt::Counters keys =
      simt::launch(options, [&](HostLane& lane) { cuda::BackwardKeys<Config>::run(lane, p); });
  rows.mma += keys.mma;
  rows.bank_conflicts += keys.bank_conflicts;
  return rows;
}

std::optional<std::string> first_backward_error(const Backward& b, const Sums& sums) {
  const reference::Gradients want = reference::attend_backward(b.c.oracle(), b.d_out.oracle());
  const bool is_half = b.c.shape.dtype == DType::kF16;
  const Bounds bounds = bounds_of(b, is_half ? 0x1p-11 : 0x1p-8, is_half ? 0x1p-25 : 0.0);
  for (const auto& error : {first_difference("dq", sums.dq, want.dq, bounds.dq),
                            first_difference("dk", sums.dk, want.dk, bounds.dk),
                            first_difference("dv", sums.dv, want.dv, bounds.dv)}) {
    if (error) return error;
  }
  return std::nullopt;
}

// Products of tiles when every row sees every key: 3 by rows, 4 by keys, those of S and dP once for
// every part.
template <class Config>
int64_t full_mma_count(const AttendShape& s) {
  const int64_t row_tiles = (s.q_rows + Config::kRows - 1) / Config::kRows;
  const int64_t key_tiles = (s.kv_rows + Config::kKeys - 1) / Config::kKeys;
  const int64_t area = int64_t{Config::kRows} * Config::kKeys;
  const int64_t scores = 2 * Config::kParts * (Config::kDimQk + Config::kDimV);
  const int64_t dims = scores + 2 * Config::kDimQk + Config::kDimV;
  return row_tiles * key_tiles * area * s.heads * dims / (16 * 8 * 16);
}

template <class Config>
class GpuBackward : public testing::Test {};
using Configs = testing::Types<B64, B64Half, B96, B128, B192, B256>;
TYPED_TEST_SUITE(GpuBackward, Configs);

TYPED_TEST(GpuBackward, MatchesTheOracleOverRandomShapes) {
  std::mt19937_64 random(TypeParam::kDimQk);
  const auto any = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  cpu::Workspace workspace(cpu::detect_caches());
  for (int round = 0; round < 6; ++round) {
    const int kv_heads = static_cast<int>(any(1, 2)), group = static_cast<int>(any(1, 2));
    const AttendShape shape = shape_of<TypeParam>(
        any(1, TypeParam::kRows + 9), any(1, 2 * TypeParam::kKeys + 5), kv_heads * group, kv_heads);
    SCOPED_TRACE(fmt::format("round {}: {} rows, {} keys, {} of {} heads", round, shape.q_rows,
                             shape.kv_rows, kv_heads, shape.heads));
    Case c = gpu_case(shape, random());
    if (round % 3 == 1) c.make_causal(any(-shape.q_rows / 2, shape.kv_rows));
    if (round % 3 == 2) c.make_random_spans(random());
    const Backward b(std::move(c), random(), workspace);
    Sums sums(shape);
    const simt::Counters counters = launch_backward<TypeParam>(b, sums, random());
    EXPECT_EQ(counters.bank_conflicts, 0);
    if (round % 3 == 0) {
      EXPECT_EQ(counters.mma, full_mma_count<TypeParam>(shape));
    }
    const auto error = first_backward_error(b, sums);
    EXPECT_FALSE(error) << *error;
  }
}

TYPED_TEST(GpuBackward, AddsToWhatIsThereAndGivesTheSameBitsInAnyOrder) {
  cpu::Workspace workspace(cpu::detect_caches());
  Case c = gpu_case(shape_of<TypeParam>(40, 50, 2, 1), 3);
  c.make_causal(15);
  const Backward b(std::move(c), 4, workspace);
  Sums first(b.c.shape);
  launch_backward<TypeParam>(b, first, 1);
  Sums again(b.c.shape), more(b.c.shape, 1.0F);
  launch_backward<TypeParam>(b, again, 2);
  EXPECT_EQ(again, first);
  launch_backward<TypeParam>(b, more, 3);
  for (size_t i = 0; i < more.dk.size(); ++i)
    EXPECT_NEAR(more.dk[i], first.dk[i] + 1.0F, 0x1p-22 * (std::fabs(first.dk[i]) + 1));
}

TEST(GpuBackwardDelta, IsTheSumOfProducts) {
  cpu::Workspace workspace(cpu::detect_caches());
  for (const int dim : {64, 96, 256}) {
    Tensor out(DType::kBF16, 11, 2, dim, Tensor::Layout::kTokenMajor, 8), d_out = out;
    std::mt19937_64 random(5);
    out.fill_normal(random, 1);
    d_out.fill_normal(random, 1);
    std::vector<float> delta(22);
    const cuda::DeltaParams p{view_of(out), view_of(d_out), delta.data(), 0, 11, 11, dim};
    simt::LaunchOptions options;
    options.shape = cuda::delta_shape(11, 2, 1);
    simt::launch(options, [&](HostLane& lane) { cuda::row_delta<Bf16>(lane, p); });
    for (int64_t head = 0; head < 2; ++head) {
      for (int64_t row = 0; row < 11; ++row) {
        double sum = 0, magnitude = 0;
        for (int64_t d = 0; d < dim; ++d) {
          sum += out.get(row, head, d) * d_out.get(row, head, d);
          magnitude += std::fabs(out.get(row, head, d) * d_out.get(row, head, d));
        }
        const float have = delta[static_cast<size_t>(head * 11 + row)];
        EXPECT_NEAR(static_cast<double>(have), sum, 20 * 0x1p-24 * magnitude);
      }
    }
  }
}

// Nothing, or how the sabotaged kernels were caught.
std::string caught(const Backward& b, const simt::Sabotage& sabotage) {
  Sums sums(b.c.shape);
  try {
    const simt::Counters counters = launch_backward<B64>(b, sums, 1, sabotage);
    if (counters.bank_conflicts > 0) return "bank conflicts";
  } catch (const simt::SimtFault& fault) {
    return fault.what();
  }
  return first_backward_error(b, sums).value_or("");
}

TEST(GpuBackwardMutants, AreCaught) {
  cpu::Workspace workspace(cpu::detect_caches());
  const Backward b(gpu_case(shape_of<B64>(70, 70), 6), 7, workspace);  // Three tiles each way.
  EXPECT_EQ(caught(b, {}), "");
  for (int i = 0; i < 3; ++i) EXPECT_NE(caught(b, {.skip_wait = i}), "") << "wait " << i;
  for (int i = 0; i < 5; ++i) EXPECT_NE(caught(b, {.skip_barrier = i}), "") << "barrier " << i;
  EXPECT_NE(caught(b, {.swaps_fragments = true}), "");
  EXPECT_NE(caught(b, {.skips_swizzled_bit = true}), "");
}

}  // namespace
}  // namespace ring::test
