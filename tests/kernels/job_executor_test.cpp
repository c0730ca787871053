// A program over several processes, played by threads that share nothing but a network and a job.
#include "kernels/cuda/job_executor.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <set>
#include <thread>

#include "core/error.h"
#include "kernels/cuda/host_runtime.h"
#include "tests/kernels/executor_fixture.h"

namespace ring::cuda {
namespace {

constexpr int kProcesses = 3;

/// What the processes of a ThreadJob share.
struct Meeting {
  std::barrier<> barrier{kProcesses};
  std::vector<std::byte> parts[kProcesses];
};

class ThreadJob final : public Job {
 public:
  ThreadJob(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return kProcesses; }
  int local_rank() const override { return rank_; }
  void broadcast(std::span<std::byte> bytes) override {
    if (rank_ == 0) meeting_.parts[0].assign(bytes.begin(), bytes.end());
    barrier();
    std::memcpy(bytes.data(), meeting_.parts[0].data(), bytes.size());
    barrier();
  }
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    meeting_.parts[rank_].assign(bytes.begin(), bytes.end());
    barrier();
    std::vector<std::vector<std::byte>> all;
    if (rank_ == 0) all.assign(std::begin(meeting_.parts), std::end(meeting_.parts));
    barrier();
    return all;
  }
  void barrier() override { meeting_.barrier.arrive_and_wait(); }

 private:
  Meeting& meeting_;
  int rank_;
};

TEST(JobExecutor, ProcessZeroHasTheTimelineAndTheOutputsOfAll) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 8;
  problem.head_dim_v = 6;
  problem.dtype = DType::kBF16;
  problem.mask = Mask::causal(40);
  Tuning tuning;
  tuning.ranks = kProcesses;
  tuning.block_tokens = 8;
  tuning.blocks_per_message = 1;
  const RingProgram program = plan(problem, tuning);
  const SeededData data(9);
  std::vector<int64_t> positions;
  for (int64_t position = 0; position < 40; ++position) positions.push_back(position);
  Meeting meeting;
  const auto network = make_host_network();
  testing_support::Output have;
  std::set<OpId> ops;
  bool can_read_elsewhere = true;
  std::vector<std::thread> processes;
  for (int rank = 0; rank < kProcesses; ++rank) {
    processes.emplace_back([&, rank] {
      HostRuntimeOptions host;
      host.seed = static_cast<uint64_t>(rank);
      host.max_delay_us = 100;
      host.network = network;
      HostRuntime runtime(host);
      ThreadJob job(meeting, rank);
      GpuOptions options;
      options.carrier = Carrier::kExchanges;
      options.devices.assign(kProcesses, -1);
      options.devices[static_cast<size_t>(rank)] = 0;
      GpuExecutor local(program, data, runtime, options);
      JobExecutor executor(program, local, job, positions);
      for (int run = 0; run < 3; ++run) {
        const Timeline& timeline = executor.run();
        if (rank != 0) continue;
        ops.clear();
        for (const Slice& slice : timeline.slices) ops.insert(slice.op);
      }
      if (rank == 0) {
        have = testing_support::gather(executor, problem);
      } else if (rank == 1) {
        std::vector<float> out(24), lse(4);
        try {
          executor.read_output(0, 0, out, lse);
        } catch (const Error&) {
          can_read_elsewhere = false;
        }
      }
    });
  }
  for (std::thread& process : processes) process.join();
  EXPECT_EQ(static_cast<int64_t>(ops.size()), program.op_count());
  EXPECT_FALSE(can_read_elsewhere);
  const testing_support::Output want = testing_support::oracle(problem, data);
  EXPECT_LT(testing_support::relative_rms(have.out, want.out), 0x1p-8);
}

}  // namespace
}  // namespace ring::cuda
