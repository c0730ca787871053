#include "kernels/measured_run.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/memory_model.h"
#include "kernels/data.h"
#include "kernels/executor.h"

namespace ring {

MeasuredRun measure_program(const RingProgram& program, const MeasureOptions& options,
                            const std::atomic<bool>& is_interrupted) {
  const auto tell = [&options](double done, std::string_view what) {
    if (options.on_progress) options.on_progress(done, what);
  };
  const SeededData data(options.seed);
  ExecutorOptions executor_options;
  executor_options.cores = options.cores;
  executor_options.interrupt = &is_interrupted;
  tell(0, "filling Q, K and V");
  CpuExecutor executor(program, data, executor_options);
  const double jobs = options.warmups + options.repeats + (options.check_rows > 0 ? 1 : 0);
  MeasuredRun run;
  run.measurement =
      measure_runs(executor, options.warmups, options.repeats, is_interrupted, [&](int i) {
        tell(i / jobs, i < options.warmups
                           ? "warming up"
                           : fmt::format("run {} of {}", i - options.warmups + 1, options.repeats));
      });
  run.metrics = measure(run.measurement.timeline);
  if (options.check_rows > 0 && run.measurement.is_complete) {
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
