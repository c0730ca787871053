// HostRuntime: a device runtime without devices, whose streams are threads with random delays.
#pragma once

#include <functional>
#include <memory>

#include "kernels/cuda/runtime.h"

namespace ring::cuda {

/// How many commands of every stream are known to be done, by stream.
using StreamClock = std::vector<int64_t>;

/// Where sends meet receives. Shared by runtimes that stand for processes of one job.
class HostNetwork;
std::shared_ptr<HostNetwork> make_host_network();

struct HostRuntimeOptions {
  int devices = 1;
  uint64_t seed = 1;                          ///< Of the delays before commands.
  int max_delay_us = 0;                       ///< 0: no delays.
  double timeout_s = 100;                     ///< A wait that takes longer is a failure of the run.
  std::shared_ptr<HostNetwork> network = {};  ///< A fresh one if null.
  std::function<void(const KernelCall&)> kernels = {};   ///< run_on_host if empty.
  std::function<std::string(int, int)> link_class = {};  ///< "pcie" for all if empty.
};

/// Does what is called as a GPU might at worst: every stream goes at its own pace, and only events,
/// exchanges and synchronize() make order between them. It keeps that order as vector clocks, so
/// that a test can ask whether one thing was ordered after another, not just whether it happened
/// to come later.
class HostRuntime final : public DeviceRuntime {
 public:
  explicit HostRuntime(HostRuntimeOptions options);
  ~HostRuntime() override;

  int device_count() const override;
  DeviceFacts facts(int device) const override;
  std::string link_class(int from, int to) const override;
  std::map<std::string, std::string> versions() const override { return {{"runtime", "host"}}; }
  void require_attend(int, DType, int, int) const override {}
  void require_backward(int, DType, int, int) const override {}
  std::string attend_kernel(int, DType, int, int) const override { return "host"; }
  std::byte* allocate(int device, Bytes bytes) override;
  void upload(std::byte* to, std::span<const std::byte> from) override;
  void download(std::span<std::byte> to, const std::byte* from) override;
  int create_stream(int device, bool is_urgent) override;
  int create_event(int device) override;
  int create_stamp(int device) override;
  void record(int stream, int event) override;
  void wait(int stream, int event) override;
  void stamp(int stream, int stamp) override;
  void copy(int stream, std::byte* to, const std::byte* from, Bytes bytes) override;
  void launch(int stream, const KernelCall& call) override;
  void exchange(std::span<const ExchangePart> parts, std::span<const int> streams) override;
  void synchronize() override;
  int capture(std::span<const int>, const std::function<void()>&) override { return kNotCaptured; }
  void replay(int captured) override;
  void begin_clock() override;
  double stamp_s(int stamp) override;
  double clock_uncertainty_s() const override { return 0; }

  /// What was known to be done in the stream of the stamp when it was taken; only while no command
  /// is under way.
  const StreamClock& stamp_clock(int stamp) const;
  int stamp_stream(int stamp) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ring::cuda
