// CudaRuntime: the device runtime on CUDA devices, exchanges over NCCL.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/device/cudnn_attention.h"
#include "kernels/cuda/device/nccl_comms.h"
#include "kernels/cuda/kernels.h"

namespace ring::cuda {

class CudaRuntime final : public DeviceRuntime {
 public:
  CudaRuntime(const std::optional<NcclJob>& job, AttendKernels kernels);
  ~CudaRuntime() override;

  int device_count() const override { return static_cast<int>(facts_.size()); }
  DeviceFacts facts(int device) const override { return facts_[static_cast<size_t>(device)]; }
  std::string link_class(int from, int to) const override;
  std::map<std::string, std::string> versions() const override;
  void require_attend(int device, DType dtype, int dim_qk, int dim_v) const override;
  void require_backward(int device, DType dtype, int dim_qk, int dim_v) const override;
  std::string attend_kernel(int device, DType dtype, int dim_qk, int dim_v) const override;
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
  void prepare(int stream, const KernelCall& call) override;
  void exchange(std::span<const ExchangePart> parts, std::span<const int> streams) override;
  void synchronize() override;
  int capture(std::span<const int> streams, const std::function<void()>& enqueue) override;
  void replay(int captured) override;
  void begin_clock() override;
  double stamp_s(int stamp) override;
  double clock_uncertainty_s() const override { return clock_uncertainty_s_; }

 private:
  struct Stream {
    cudaStream_t handle = nullptr;
    int device = 0;
  };
  struct Event {
    cudaEvent_t handle = nullptr;
    int device = 0;
  };

  const Stream& stream(int id) const { return streams_[static_cast<size_t>(id)]; }
  int device_of(const std::byte* at) const;
  void enable_peers();
  /// The kernel for sm_90a for these head dims, or null; of sm_80, or null; the chosen of both.
  const CompiledKernel* hopper_for(int device, DType dtype, int dim_qk, int dim_v) const;
  const CompiledKernel* mma_for(int device, DType dtype, int dim_qk, int dim_v) const;
  const CompiledKernel* forward_for(int device, DType dtype, int dim_qk, int dim_v) const;
  template <class Params>
  void launch_kernel(int stream, const CompiledKernel& kernel, const simt::LaunchShape& shape,
                     const Params& params);
  template <class Call>
  void launch_over_states(int stream, StateKernel kernel, DType dtype, const Call& call);
  void launch_one(int stream, const AttendCall& call);
  void launch_one(int stream, const FinalizeCall& call);
  void launch_one(int stream, const MergeCall& call);
  void launch_one(int stream, const ResetCall& call);
  void launch_one(int stream, const NormalizeCall& call);
  void launch_one(int stream, const CompleteCall& call);
  void launch_one(int stream, const BackwardCall& call);
  void launch_one(int stream, const AddCall& call);
  void launch_one(int stream, const ClearCall& call);
  void launch_one(int stream, const CopyRowsCall& call);
  void launch_one(int stream, const DeltaCall& call);
  void launch_one(int stream, const SpinCall& call);
  bool is_for_cudnn(const AttendCall& call) const;
  void launch_cudnn(int stream, const AttendCall& call);
  /// Streams other than the first join the capture of the first, or it waits for them.
  void fork(std::span<const int> streams);
  void join(std::span<const int> streams);

  AttendKernels kernels_;
  std::vector<DeviceFacts> facts_;
  std::vector<CompiledKernel> forward_, hopper_;
  std::vector<BackwardPair> backward_;
  std::vector<Stream> streams_;
  std::vector<Event> events_, stamps_;
  std::vector<Event> bases_;  ///< By device: where the clock begins.
  std::vector<double> base_s_;
  std::vector<cudaStream_t> base_streams_;
  double clock_uncertainty_s_ = 0;
  std::map<const std::byte*, std::pair<Bytes, int>> memory_;  ///< Begin: size and device.
  std::unique_ptr<NcclComms> comms_;
  std::map<int, CudnnAttention> cudnn_;  ///< By stream.
  bool is_capturing_ = false;
  struct Graph {
    cudaGraphExec_t handle = nullptr;
    int stream = 0;  ///< That it is launched in.
  };
  std::vector<Graph> graphs_;
};

}  // namespace ring::cuda
