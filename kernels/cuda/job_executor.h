// JobExecutor: a GpuExecutor whose other ranks are in other processes.
#pragma once

#include <map>
#include <vector>

#include "kernels/cuda/gpu_executor.h"
#include "kernels/job.h"

namespace ring::cuda {

/// All processes of the job call run() together. On process 0 the timeline and the outputs are
/// those of all ranks; elsewhere those of the own ones.
class JobExecutor final : public Executor {
 public:
  /// `local` runs the ranks of this process; `positions` are the tokens that will be asked for.
  JobExecutor(const RingProgram& program, GpuExecutor& local, Job& job,
              std::vector<int64_t> positions);

  const Timeline& run() override;
  /// Of the positions given, on process 0.
  void read_output(int64_t batch, int64_t position, std::span<float> out,
                   std::span<float> lse) const override;
  std::span<const float> query_gradients(int64_t batch, int64_t position) const override;
  std::span<const float> key_gradients(int64_t batch, int64_t position) const override;
  std::span<const float> value_gradients(int64_t batch, int64_t position) const override;
  Bytes storage_bytes(int rank) const override { return local_.storage_bytes(rank); }
  /// How far off times of two ranks may be in the last timeline: the clocks of the processes begin
  /// at a barrier, those of their devices are apart as they say.
  double clock_uncertainty_s() const { return clock_uncertainty_s_; }

 private:
  void gather_slices();
  void gather_rows();
  /// Values of a row: output, lse, then the gradients where there are any.
  enum Part { kOutput, kLse, kQueries, kKeys, kValues, kParts };
  size_t part_begin(Part part) const;
  std::vector<float> local_row(int64_t batch, int64_t position) const;
  std::span<const float> part_of(int64_t batch, int64_t position, Part part) const;

  const RingProgram& program_;
  GpuExecutor& local_;
  Job& job_;
  std::vector<int64_t> positions_;
  Timeline timeline_;
  std::map<std::pair<int64_t, int64_t>, std::vector<float>> rows_;  ///< By batch and position.
  double clock_uncertainty_s_ = 0;
};

}  // namespace ring::cuda
