// A ring on GPUs, predicted from a profile that was fitted to their probes.
#include <gtest/gtest.h>

#include "core/strategy.h"
#include "sim/prediction.h"
#include "tests/kernels/gpu_fit_support.h"

namespace ring::test {
namespace {

constexpr double kStart_s = 10e-6, kRate = 100e9, kWait_s = 5e-6;
constexpr double kAttendSlowdown = 1.25;

/// Of all heads and the batch.
double attend_s(const Problem& problem, const Op& op) {
  const auto pairs = static_cast<double>(op.visible_pairs * problem.heads * problem.batch);
  return 20e-6 + pairs * static_cast<double>(problem.head_dim + problem.head_dim_v) * 4e-15;
}

double seconds_of(const cuda::GpuProbe& gpu, const Op& op) {
  if (op.kind == OpKind::kReceive || op.kind == OpKind::kSend)
    return kStart_s + static_cast<double>(op.bytes) / kRate;
  if (op.kind != OpKind::kAttend) return 10e-6;
  const bool is_disturbed = gpu.probe.attend == "attend-beside-transfer" && op.step == 0;
  return attend_s(gpu.probe.program.problem, op) * (is_disturbed ? kAttendSlowdown : 1);
}

Machine two_devices() {
  return fitted_machine(2, {{"nvlink", {{0, 1}}}}, {.carrier = cuda::Carrier::kExchanges}, kWait_s,
                        seconds_of);
}

RingProgram ring_of_two(Tokens tokens, int64_t heads, int64_t kv_heads) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.head_dim = problem.head_dim_v = 128;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::full(tokens);
  Tuning tuning;
  tuning.ranks = 2;
  tuning.partition = "contiguous";
  tuning.block_tokens = tokens / 2;
  return plan(problem, tuning);
}

/// Of one attention and of all messages to rank 0, alone.
struct Alone {
  double attend_s = 0, messages_s = 0;
};
Alone alone(const RingProgram& program) {
  Alone times;
  for (const Op& op : program.rank_programs[0].ops) {
    if (op.kind == OpKind::kAttend) times.attend_s = attend_s(program.problem, op);
    if (op.kind == OpKind::kReceive)
      times.messages_s += kStart_s + static_cast<double>(op.bytes) / kRate;
  }
  return times;
}

double predicted_s(const RingProgram& program) {
  return seconds_from_picoseconds(predict(program, two_devices()).result.makespan_ps);
}

/// What is not told apart here: waking of both ends, and finalizing.
constexpr double kRest_s = 4 * kWait_s + 20e-6;

TEST(GpuPrediction, AttentionThatHidesMessagesIsSlowerWhileTheyTravel) {
  const RingProgram program = ring_of_two(32768, 16, 16);
  const Alone times = alone(program);
  ASSERT_GT(times.attend_s, 2 * times.messages_s);
  // The first attention does its work at 1 / 1.25 of its speed for so long.
  const double disturbed_s = times.messages_s * (1 - 1 / kAttendSlowdown);
  const double want_s = 2 * times.attend_s + disturbed_s;
  const double have_s = predicted_s(program);
  ASSERT_GT(disturbed_s, kRest_s);
  EXPECT_GT(have_s, want_s - 1e-6);
  EXPECT_LT(have_s, want_s + kRest_s);
}

TEST(GpuPrediction, AttentionOfFewRowsWaitsForItsKeys) {
  const RingProgram program = ring_of_two(512, 32, 32);
  const Alone times = alone(program);
  ASSERT_GT(times.messages_s, kAttendSlowdown * times.attend_s);
  const double want_s = times.messages_s + times.attend_s;
  const double have_s = predicted_s(program);
  EXPECT_GT(have_s, want_s - 1e-6);
  EXPECT_LT(have_s, want_s + kRest_s);
}

}  // namespace
}  // namespace ring::test
