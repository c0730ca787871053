#include "kernels/speed_check.h"

#include "core/fit.h"
#include "core/strategy.h"
#include "kernels/cores.h"
#include "kernels/data.h"
#include "kernels/executor.h"

namespace ring {
namespace {

constexpr Tokens kTokens = 512;
constexpr Tokens kBlock = 128;
constexpr int kRuns = 3;

/// A document of its own for every core, so that nothing travels.
RingProgram check_program_for(int cores) {
  std::vector<int64_t> bounds;
  for (int core = 0; core <= cores; ++core) bounds.push_back(core * kTokens);
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = problem.head_dim_v = 128;
  problem.mask = Mask::documents(bounds, false);
  Tuning tuning;
  tuning.ranks = cores;
  tuning.partition = "contiguous";
  tuning.block_tokens = kBlock;
  return plan(problem, tuning);
}

int core_count(int cores) { return cores > 0 ? cores : Cores().count(); }

}  // namespace

struct SpeedCheck::Impl {
  explicit Impl(int cores)
      : program(check_program_for(cores)),
        executor(program, SeededData(1), ExecutorOptions{.cores = cores}) {}

  RingProgram program;
  CpuExecutor executor;
};

SpeedCheck::SpeedCheck(int cores) : impl_(std::make_unique<Impl>(core_count(cores))) {
  impl_->executor.run();
}

SpeedCheck::~SpeedCheck() = default;

double SpeedCheck::measure() {
  std::vector<double> seconds;
  for (int i = 0; i < kRuns; ++i)
    seconds.push_back(seconds_from_picoseconds(impl_->executor.run().makespan_ps()));
  return median(seconds);
}

double calibrated_speed_check_s(const Calibration& calibration) {
  std::vector<double> seconds;
  for (const CalibrationSample& sample : calibration.samples) {
    if (sample.probe == kSpeedProbe)
      seconds.insert(seconds.end(), sample.seconds.begin(), sample.seconds.end());
  }
  return median(seconds);
}

}  // namespace ring
