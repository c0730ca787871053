// What the tests of rings on the host runtime share: was everything ordered that had to be?
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cuda/gpu_executor.h"
#include "kernels/cuda/host_runtime.h"

namespace ring::testing_support {

using cuda::GpuExecutor;
using cuda::HostRuntime;
using cuda::HostRuntimeOptions;
using cuda::StreamClock;

inline std::vector<OpId> needs(const RingProgram& program, OpId id) {
  std::vector<OpId> needed;
  const RankProgram& rank = program.rank_programs[static_cast<size_t>(id.rank)];
  const Op& op = program.op(id);
  for (size_t i = 0; i < rank.ops.size(); ++i) {
    const Op& other = rank.ops[i];
    bool is_needed = other.lane == op.lane && other.lane_position == op.lane_position - 1;
    for (const LanePoint& point : rank.deps_of(op)) {
      is_needed = is_needed || (other.lane == point.lane && other.lane_position == point.position);
    }
    if (is_needed) needed.push_back({id.rank, static_cast<int64_t>(i)});
  }
  return needed;
}

// The first op that was not ordered after all that the program says it waits for, or nothing. What
// counts is the order that streams and events made, not what happened to come first.
inline std::string first_disorder(const RingProgram& program, const GpuExecutor& executor,
                                  const HostRuntime& runtime) {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const auto& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const OpId id{rank, static_cast<int64_t>(i)};
      const StreamClock& known = runtime.stamp_clock(executor.stamps(id).begin);
      for (const OpId need : needs(program, id)) {
        const int end = executor.stamps(need).end;
        const auto stream = static_cast<size_t>(runtime.stamp_stream(end));
        const StreamClock& done = runtime.stamp_clock(end);
        const int64_t count = stream < done.size() ? done[stream] : 0;
        if ((stream < known.size() ? known[stream] : 0) < count)
          return fmt::format("r{}:{} is not ordered after r{}:{}", rank, i, need.rank, need.index);
      }
    }
  }
  return "";
}

// Two runs, each of all ops and in order: the second finds what the first left behind.
inline void run_twice_in_order(const RingProgram& program, GpuExecutor& executor,
                               const HostRuntime& runtime) {
  for (int run = 0; run < 2; ++run) {
    const Timeline& timeline = executor.run();
    EXPECT_EQ(static_cast<int64_t>(timeline.slices.size()), program.op_count());
    EXPECT_EQ(first_disorder(program, executor, runtime), "");
  }
}

inline HostRuntimeOptions delayed(uint64_t seed) {
  HostRuntimeOptions options;
  options.seed = seed;
  options.max_delay_us = 80;
  return options;
}

}  // namespace ring::testing_support
