// The GPU kernels and rings on real devices, against the fp64 oracle; skipped where there is none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "kernels/cuda/gpu_session.h"
#include "tests/kernels/backward_fixture.h"
#include "tests/kernels/backward_support.h"
#include "tests/kernels/executor_fixture.h"
#include "tests/kernels/gpu_support.h"

namespace ring::cuda {
namespace {

using testing_support::gather;
using testing_support::oracle;
using testing_support::Output;

class GpuDevice : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> missing = missing_devices();
    if (!missing.empty()) GTEST_SKIP() << missing.front();
  }
};

struct Dims {
  int qk, v;
};
constexpr Dims kDims[] = {{64, 64}, {96, 96}, {128, 128}, {192, 128}, {256, 256}};

Problem problem_of(Dims dims, DType dtype, const std::string& mask, int64_t tokens) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = dims.qk;
  problem.head_dim_v = dims.v;
  problem.dtype = dtype;
  problem.mask = Mask::parse(mask, tokens);
  return problem;
}

void expect_right(const RingProgram& program, Carrier carrier,
                  AttendKernels kernels = AttendKernels::kMma) {
  const SeededData data(11);
  GpuSession session = make_gpu_session(program, data, carrier, kernels);
  const Output want = oracle(program.problem, data);
  for (int run = 0; run < 3; ++run) session.local->run();
  const Output have = gather(*session.local, program.problem);
  // Weights and output are rounded to the model dtype.
  testing_support::expect_output(have, want, 2 * 0x1p-8, 1e-3);
}

TEST_F(GpuDevice, RingsOfAllHeadDimsMatchTheOracle) {
  for (const Dims dims : kDims) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      for (const char* mask : {"full", "causal", "window:100", "docs:0,130,131,400,517"}) {
        SCOPED_TRACE(fmt::format("{} {} {} {}", dims.qk, dims.v, name(dtype), mask));
        Tuning tuning;
        tuning.ranks = 3;
        tuning.block_tokens = 80;
        tuning.blocks_per_message = 1;
        expect_right(plan(problem_of(dims, dtype, mask, 517), tuning), Carrier::kCopies);
      }
    }
  }
}

// The kernels of sm_90a against the oracle, where the device has them; elsewhere it says so.
TEST_F(GpuDevice, WgmmaKernelsMatchTheOracle) {
  if (make_cuda_runtime()->facts(0).capability != 90)
    GTEST_SKIP() << "wgmma kernels run on compute capability 9.0 alone";
  for (const Dims dims : {Dims{64, 64}, Dims{128, 128}}) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      for (const char* mask : {"full", "causal", "window:300", "docs:0,130,131,400,1017"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", dims.qk, name(dtype), mask));
        Tuning tuning;
        tuning.ranks = 2;
        tuning.block_tokens = 300;
        expect_right(plan(problem_of(dims, dtype, mask, 1017), tuning), Carrier::kCopies,
                     AttendKernels::kWgmma);
      }
    }
  }
}

TEST_F(GpuDevice, RingsOfBothPassesMatchTheOracle) {
  for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    Problem problem = problem_of({128, 128}, DType::kBF16, "causal", 700);
    problem.pass = Pass::kForwardBackward;
    Tuning tuning;
    tuning.ranks = 3;
    tuning.block_tokens = 128;
    tuning.backward = moves;
    const RingProgram program = plan(problem, tuning);
    const SeededData data(5);
    GpuSession session = make_gpu_session(program, data, Carrier::kCopies);
    for (int run = 0; run < 2; ++run) session.local->run();
    const auto have = testing_support::gather_gradients(*session.local, problem);
    const auto want = testing_support::oracle_gradients(problem, data);
    // P, dS and the output are rounded to bf16: twice what the emulation shows.
    EXPECT_LT(testing_support::relative_rms(have.dq, want.dq), 0x1p-6);
    EXPECT_LT(testing_support::relative_rms(have.dk, want.dk), 0x1p-6);
    EXPECT_LT(testing_support::relative_rms(have.dv, want.dv), 0x1p-6);
  }
}

TEST_F(GpuDevice, StrategiesThatMoveQueriesAndHeadsMatchTheOracle) {
  for (const char* strategy : {"pass-q", "bidirectional-ring", "tree-decode", "ulysses"}) {
    SCOPED_TRACE(strategy);
    Tuning tuning;
    tuning.strategy = strategy;
    tuning.ranks = 2;
    tuning.block_tokens = 100;
    expect_right(plan(problem_of({128, 128}, DType::kBF16, "causal", 517), tuning),
                 Carrier::kCopies);
  }
}

TEST_F(GpuDevice, DeterministicRingsGiveTheSameBytes) {
  const Problem problem = problem_of({128, 128}, DType::kBF16, "causal", 700);
  const SeededData data(4);
  std::vector<double> expected;
  for (const int ranks : {1, 2, 4}) {
    Tuning tuning;
    tuning.ranks = ranks;
    tuning.block_tokens = 128;
    tuning.is_deterministic = true;
    const RingProgram program = plan(problem, tuning);
    GpuSession session = make_gpu_session(program, data, Carrier::kCopies);
    session.local->run();
    const Output have = gather(*session.local, problem);
    if (expected.empty()) expected = have.out;
    EXPECT_EQ(have.out, expected) << ranks;
  }
}

TEST_F(GpuDevice, ExchangesMatchTheOracle) {
  const int devices = make_cuda_runtime()->device_count();
  if (devices < 2) GTEST_SKIP() << "exchanges need two GPUs";
  Tuning tuning;
  tuning.ranks = devices;
  tuning.block_tokens = 64;
  expect_right(plan(problem_of({128, 128}, DType::kBF16, "causal", 1000), tuning),
               Carrier::kExchanges);
}

/// A copy of host values on the device.
template <class T>
T* on_device(DeviceRuntime& runtime, const T* values, size_t count) {
  std::byte* const at = runtime.allocate(0, static_cast<Bytes>(count * sizeof(T)));
  runtime.upload(at, std::as_bytes(std::span(values, count)));
  return reinterpret_cast<T*>(at);
}

ConstTensor on_device(DeviceRuntime& runtime, const test::Tensor& tensor, int64_t tokens, int heads,
                      int dim) {
  const cpu::ConstView view = tensor.view();
  const auto count =
      static_cast<size_t>((tokens - 1) * view.token_stride + (heads - 1) * view.head_stride + dim);
  return {on_device(runtime, static_cast<const uint16_t*>(view.data), count), 0, view.token_stride,
          view.head_stride};
}

TEST_F(GpuDevice, GradientsMatchTheOracle) {
  const std::unique_ptr<DeviceRuntime> runtime = make_cuda_runtime();
  const int stream = runtime->create_stream(0, false);
  cpu::Workspace workspace(cpu::detect_caches());
  for (const Dims dims : kDims) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      const cpu::AttendShape shape{
          150, 210, 4, 2, dims.qk, dims.v, dtype, static_cast<float>(1 / std::sqrt(dims.qk))};
      test::Case c = test::gpu_case(shape, 3);
      c.make_causal(60);
      const test::Backward b(std::move(c), 5, workspace);
      test::Sums sums(shape);
      BackwardCall call;
      BackwardParams& p = call.params;
      p.q = on_device(*runtime, b.c.q, 150, 4, dims.qk);
      p.k = on_device(*runtime, b.c.k, 210, 2, dims.qk);
      p.v = on_device(*runtime, b.c.v, 210, 2, dims.v);
      p.d_out = on_device(*runtime, b.d_out, 150, 4, dims.v);
      p.lse = on_device(*runtime, b.lse.data(), b.lse.size());
      p.delta = on_device(*runtime, b.delta.data(), b.delta.size());
      p.dq = on_device(*runtime, sums.dq.data(), sums.dq.size());
      p.dk = on_device(*runtime, sums.dk.data(), sums.dk.size());
      p.dv = on_device(*runtime, sums.dv.data(), sums.dv.size());
      p.spans = on_device(*runtime, reinterpret_cast<const KeyRange*>(b.c.spans.data()), 150);
      p.row_head_stride = p.q_rows = 150;
      p.key_head_stride = p.kv_rows = 210;
      p.group = 2;
      p.scale = shape.scale;
      call.dim_qk = dims.qk;
      call.dim_v = dims.v;
      call.heads = 4;
      call.dtype = dtype;
      runtime->launch(stream, call);
      const auto fetch = [&](std::vector<float>& to, const float* from) {
        runtime->download(std::as_writable_bytes(std::span(to)),
                          reinterpret_cast<const std::byte*>(from));
      };
      fetch(sums.dq, p.dq);
      fetch(sums.dk, p.dk);
      fetch(sums.dv, p.dv);
      const reference::Gradients want = reference::attend_backward(b.c.oracle(), b.d_out.oracle());
      const bool is_half = dtype == DType::kF16;
      // Twice the bound of the emulation: mma adds within a step in an order of its own.
      test::Bounds bounds = test::bounds_of(b, is_half ? 0x1p-10 : 0x1p-7, is_half ? 0x1p-24 : 0);
      for (const auto& error : {test::first_difference("dq", sums.dq, want.dq, bounds.dq),
                                test::first_difference("dk", sums.dk, want.dk, bounds.dk),
                                test::first_difference("dv", sums.dv, want.dv, bounds.dv)})
        EXPECT_FALSE(error) << dims.qk << ": " << *error;
    }
  }
}

}  // namespace
}  // namespace ring::cuda
