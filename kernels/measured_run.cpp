#include "kernels/measured_run.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/memory_model.h"
#include "kernels/cuda/gpu_session.h"
#include "kernels/cuda/nccl_log.h"
#include "kernels/data.h"
#include "kernels/executor.h"
#include "kernels/job.h"

namespace ring {
namespace {

/// The executor of either kind; a GPU executor with what it runs on.
struct Prepared {
  cuda::GpuSession gpu;
  std::unique_ptr<CpuExecutor> cpu;
  Executor& executor() const { return cpu ? static_cast<Executor&>(*cpu) : gpu.executor(); }
};

Prepared prepare(const RingProgram& program, const DataSource& data, const MeasureOptions& options,
                 const std::atomic<bool>& is_interrupted) {
  Prepared prepared;
  if (options.gpu) {
    prepared.gpu =
        options.job == nullptr
            ? cuda::make_gpu_session(program, data, *options.gpu, options.gpu_kernels)
            : cuda::make_gpu_session(program, data, *options.job,
                                     sampled_positions(program.partition, options.check_rows),
                                     options.gpu_kernels);
    return prepared;
  }
  ExecutorOptions executor_options;
  executor_options.cores = options.cores;
  executor_options.interrupt = &is_interrupted;
  prepared.cpu = std::make_unique<CpuExecutor>(program, data, executor_options);
  return prepared;
}

std::map<std::string, std::string> gpu_context(const RingProgram& program,
                                               const cuda::GpuSession& gpu) {
  std::map<std::string, std::string> context = gpu.runtime->versions();
  if (program.has_attention) {
    const Problem& problem = program.problem;
    context["gpu attention"] = gpu.runtime->attend_kernel(
        0, problem.dtype, static_cast<int>(problem.head_dim), static_cast<int>(problem.head_dim_v));
  }
  context["gpu graph"] = gpu.local->is_captured() ? "captured" : "called op by op";
  return context;
}

/// Times are made relative to the begin of the timeline. In a job process 0 gets the samples of
/// all, of the device that each runs on, which is then called by its rank.
std::vector<cuda::DeviceSample> samples_of_all(std::vector<cuda::DeviceSample> samples,
                                               int64_t began_ns, const MeasureOptions& options,
                                               const cuda::GpuSession& gpu) {
  for (cuda::DeviceSample& sample : samples) sample.time_ns -= began_ns;
  if (options.job == nullptr) return samples;
  std::erase_if(samples, [&](const auto& sample) { return sample.device != gpu.first_device; });
  for (cuda::DeviceSample& sample : samples) sample.device = options.job->rank();
  return gather_values(*options.job, samples);
}

void add_gpu_facts(const RingProgram& program, const MeasureOptions& options,
                   const cuda::GpuSession& gpu, std::vector<cuda::DeviceSample> samples,
                   MeasuredRun& run) {
  run.context = gpu_context(program, gpu);
  run.clock_uncertainty_ps = picoseconds_from_seconds(
      gpu.together ? gpu.together->clock_uncertainty_s() : gpu.local->clock_uncertainty_s());
  run.context["gpu clock uncertainty"] = format_time(run.clock_uncertainty_ps);
  samples = samples_of_all(std::move(samples), run.measurement.began_ns, options, gpu);
  run.context.merge(cuda::monitor_summary(samples));
  if (run.measurement.steps_ps.empty()) return;
  run.counters = cuda::sampled_counters(samples, 0, run.measurement.timeline.makespan_ps());
}

}  // namespace

MeasuredRun measure_program(const RingProgram& program, const MeasureOptions& options,
                            const std::atomic<bool>& is_interrupted) {
  const auto tell = [&options](double done, std::string_view what) {
    if (options.on_progress) options.on_progress(done, what);
  };
  const SeededData data(options.seed);
  tell(0, "filling Q, K and V");
  std::optional<cuda::NcclLog> nccl;
  if (options.job != nullptr || options.gpu == cuda::Carrier::kExchanges) nccl.emplace();
  const Prepared prepared = prepare(program, data, options, is_interrupted);
  Executor& executor = prepared.executor();
  std::optional<cuda::DeviceMonitor> monitor;
  if (options.gpu) monitor.emplace(cuda::bus_ids(*prepared.gpu.runtime));
  const double jobs = options.warmups + options.repeats + (options.check_rows > 0 ? 1 : 0);
  MeasuredRun run;
  run.measurement =
      measure_runs(executor, options.warmups, options.repeats, is_interrupted, [&](int i) {
        tell(i / jobs, i < options.warmups
                           ? "warming up"
                           : fmt::format("run {} of {}", i - options.warmups + 1, options.repeats));
      });
  run.metrics = measure(run.measurement.timeline);
  if (monitor) add_gpu_facts(program, options, prepared.gpu, monitor->stop(), run);
  if (nccl) run.context.merge(nccl->facts());
  const bool is_first = options.job == nullptr || options.job->rank() == 0;
  if (options.check_rows > 0 && run.measurement.is_complete && is_first) {
    tell((options.warmups + options.repeats) / jobs, "checking against the oracle");
    run.verification = verify_rows(program, data, executor, options.check_rows);
  }
  return run;
}

void require_runnable(const RingProgram& program, Bytes available_bytes) {
  if (!program.has_attention) throw_usage("a program without attention cannot be run");
  const Bytes bytes = program_bytes(program);
  if (available_bytes > 0 && bytes > available_bytes) {
    throw_usage(fmt::format("running this takes {} of memory, and {} are available here",
                            format_bytes(bytes), format_bytes(available_bytes)),
                "a shorter sequence or fewer heads");
  }
}

}  // namespace ring
