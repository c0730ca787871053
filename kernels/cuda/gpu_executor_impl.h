// The parts of a GpuExecutor, for the files that make it up.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/gpu_executor.h"
#include "kernels/cuda/rank_tensors.h"
#include "kernels/cuda/shard_data.h"

namespace ring::cuda {

struct GpuExecutor::Impl {
  Impl(const RingProgram& program, const DataSource& data, DeviceRuntime& runtime,
       GpuOptions options);

  bool is_local(int rank) const { return tensors[static_cast<size_t>(rank)] != nullptr; }
  RankTensors& local(int rank) const { return *tensors[static_cast<size_t>(rank)]; }
  int rank_of_stream(int stream) const { return stream / (program.lanes + 1); }
  void create_rank(int rank, int device, const DataSource& data);
  void create_streams(const std::vector<int>& devices);
  OpStamps& stamps_of(OpId id) {
    return stamps[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)];
  }
  const std::vector<KernelCall>& calls_of(OpId id) const {
    return calls[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)];
  }
  void enqueue();
  void enqueue(const Command& command);
  void compute(const Command& command);
  void copy(int stream, const Pieces& to, const Pieces& from);
  void launch_calls(int stream, OpId op);
  void take_forward(const DataSource& data);
  void take_output(const GpuExecutor& forward, int rank, int32_t buffer, const TokenRanges& tokens);
  void transfer(const Command& command);
  void exchange(const Command& command);
  void collect();
  void fill_posted(size_t first_slice, int rank);
  float read_lse(int64_t batch, int64_t head, int64_t position, const TokenPlace& place) const;
  std::span<const float> gradients(Payload payload, int part, int64_t batch, int64_t position,
                                   std::vector<float>& values) const;

  const RingProgram& program;
  DeviceRuntime& runtime;
  GpuOptions options;
  DevicePlan plan;
  std::vector<std::unique_ptr<RankTensors>> tensors;  ///< By rank; null: of another process.
  std::vector<int> streams, events;                   ///< Of the runtime, by number in the plan.
  std::vector<std::vector<OpStamps>> stamps;          ///< By rank and op.
  std::vector<std::vector<std::vector<KernelCall>>> calls;
  std::map<OpId, Pieces> staged;  ///< By eager send.
  int captured = kNotCaptured;
  Timeline timeline;
  std::vector<float> dq, dk, dv;  ///< Read last.
};

}  // namespace ring::cuda
