// GpuExecutor: runs a RingProgram on devices, one stream a lane.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernels/cuda/device_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/data.h"
#include "kernels/executor_base.h"

namespace ring::cuda {

struct GpuOptions {
  Carrier carrier = Carrier::kCopies;
  /// Device of every rank; empty: ranks in turn on all devices. -1: the rank is of another process,
  /// which needs exchanges.
  std::vector<int> devices = {};
  bool is_captured =
      true;  ///< One launch of a graph instead of many calls, where that is possible.
  /// For tests: this wait of the plan is left out.
  std::optional<int> skipped_wait = {};
};

/// Two stamps around an op.
struct OpStamps {
  int begin = -1, end = -1;
};

/// Everything is put into streams by the host before anything runs, and the host has no part in the
/// run itself. Times come from stamps of the devices. A send takes the time of its transfer.
class GpuExecutor final : public Executor {
 public:
  /// `program` and `runtime` must outlive the executor. Throws Error(kUsage) for programs that are
  /// not sound, Error(kUnavailable) for what no kernel can do (fp32, head dims, a scale that is not
  /// positive), Error(kRunFailed) when memory is not to be had.
  GpuExecutor(const RingProgram& program, const DataSource& data, DeviceRuntime& runtime,
              GpuOptions options = {});
  ~GpuExecutor() override;

  const Timeline& run() override;
  /// Of tokens that ranks of this process hold.
  void read_output(int64_t batch, int64_t position, std::span<float> out,
                   std::span<float> lse) const override;
  std::span<const float> query_gradients(int64_t batch, int64_t position) const override;
  std::span<const float> key_gradients(int64_t batch, int64_t position) const override;
  std::span<const float> value_gradients(int64_t batch, int64_t position) const override;
  Bytes storage_bytes(int rank) const override;

  /// How far apart the clocks of the devices may be in the last timeline.
  double clock_uncertainty_s() const;
  bool is_captured() const;
  const DevicePlan& plan() const;
  OpStamps stamps(OpId op) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ring::cuda
