// The insides of a CpuExecutor: ranks, lanes and how their threads wait for each other.
#pragma once

#include <array>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cores.h"
#include "kernels/executor.h"
#include "kernels/executor_lane.h"
#include "kernels/transport/in_process.h"

namespace ring {

struct CpuExecutor::Impl {
  struct Rank {
    RankMemory memory;
    std::vector<Gate> progress;
    std::vector<std::unique_ptr<LaneRunner>> lanes;
    Rank(const RingProgram& program, int rank)
        : memory(program, rank), progress(static_cast<size_t>(program.lanes)) {}
  };

  Impl(const RingProgram& program_in, const DataSource& data, ExecutorOptions options_in);
  void run_forward(const DataSource& data);
  void take_forward(int rank);
  void take_output(int rank, int32_t buffer, const TokenRanges& tokens);
  ~Impl();

  void prepare_rank(int rank);
  void start_threads(const DataSource& data);
  void lane_thread(int rank, int lane, const DataSource& data);
  void prepare_lane(int rank, int lane, const DataSource& data);
  void run_lane(int rank, int lane);
  void stop();
  void fail(std::exception_ptr failure);
  void wait_for_lanes(Gate& gate, bool is_interruptible);
  void collect();
  /// From the rank that finalized the row, which need not be the one that holds the output.
  float lse_at(int64_t batch, int64_t head, int64_t position) const;
  /// Rank that holds a token, and its row there.
  std::pair<int, int64_t> place_of(int64_t position) const;
  /// One token of a gradient, of all heads: of its owner, or put together from the ranks that hold
  /// some heads of it.
  std::span<const float> gradients(Payload payload, int part, int64_t batch,
                                   int64_t position) const;
  uint32_t lane_count() const { return static_cast<uint32_t>(ranks.size()) * lanes; }

  const RingProgram& program;
  ExecutorOptions options;
  Cores cores;
  int used_cores = 1;
  uint32_t lanes = 0;
  InProcessTransport transport;
  std::vector<std::unique_ptr<Rank>> ranks;
  struct Finalized {
    int rank;
    const Op* op;
  };
  std::vector<Finalized> finalized;  ///< Ops that write output.
  /// dQ, dK and dV of the token that was asked for last, where ranks hold heads.
  mutable std::array<std::vector<float>, 3> assembled;

  /// What a backward pass begins with; only while the executor is made.
  std::unique_ptr<RingProgram> forward_program;
  std::unique_ptr<CpuExecutor> forward;

  // How the threads and the caller wait for each other.
  Gate prepared;    ///< Lanes that are ready for their first run.
  Gate run_number;  ///< Raised by the caller to start a run; closed to end the threads.
  Gate arrived;     ///< Lanes that are at the start of the run.
  Gate started;     ///< Raised by the last lane that arrives.
  Gate finished;    ///< Lanes that are through with the run.
  uint32_t runs = 0;
  int64_t start_ns = 0;
  std::atomic<bool> is_stopped{false};
  std::mutex failure_mutex;
  std::exception_ptr failure;

  std::vector<Slice> blank_slices;  ///< One per op, in the order of a sorted timeline.
  Timeline timeline;
  std::vector<std::thread> threads;
};

}  // namespace ring
