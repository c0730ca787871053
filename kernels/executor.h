// CpuExecutor: runs a RingProgram on the cores of this machine, one thread per lane.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "core/ring_program.h"
#include "core/timeline.h"
#include "kernels/data.h"
#include "kernels/executor_base.h"

namespace ring {

struct ExecutorOptions {
  int cores = 0;  ///< Cores to use, the ranks in turn; 0 means all that the process may use.
  /// When another thread or a signal handler sets it, a run stops at the next op of every lane.
  const std::atomic<bool>* interrupt = nullptr;
  /// Key spans of masked blocks are kept up to this many bytes per rank; beyond it they are worked
  /// out again at every op.
  Bytes span_cache_bytes = 64 << 20;
};

/// Prepares once and runs as often as wanted. All memory is taken at construction, touched first by
/// the thread that will use it; runs allocate nothing and lock nothing.
///
/// A program of the backward pass alone takes output and lse from a forward pass of the same
/// problem and tuning, which is run once at construction.
///
/// Lanes of rank r are threads on core r modulo the number of cores. A lane does its ops in order;
/// an op starts when the lane points it depends on are reached.
class CpuExecutor final : public Executor {
 public:
  /// `program` must outlive the executor; `data` is only read here. Throws Error(kUsage) when the
  /// program is not sound (program_check.h) or has ops that it cannot run, Error(kRunFailed) when
  /// memory or threads are not to be had.
  CpuExecutor(const RingProgram& program, const DataSource& data, ExecutorOptions options = {});
  ~CpuExecutor() override;

  const Timeline& run() override;
  void read_output(int64_t batch, int64_t position, std::span<float> out,
                   std::span<float> lse) const override;
  std::span<const float> query_gradients(int64_t batch, int64_t position) const override;
  std::span<const float> key_gradients(int64_t batch, int64_t position) const override;
  std::span<const float> value_gradients(int64_t batch, int64_t position) const override;
  /// The stored bytes of the output, (head, dim_v) in the model dtype.
  std::span<const std::byte> output_bytes(int64_t batch, int64_t position) const;

  Bytes storage_bytes(int rank) const override;
  int cores() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ring
