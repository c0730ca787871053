// Thread teams, and the forward kernel over them.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "kernels/cpu/memory.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/thread_team.h"
#include "tests/kernels/cpu_support.h"

namespace ring::test {
namespace {

TEST(CpuThreadTeam, EveryMemberRunsOncePerRun) {
  for (const int threads : {1, 2, 7}) {
    cpu::ThreadTeam team(threads, cpu::cores_of_machine());
    ASSERT_EQ(team.size(), threads);
    std::vector<std::atomic<int>> calls(static_cast<size_t>(threads));
    for (int round = 0; round < 200; ++round) {
      team.run([&](int member) { ++calls[static_cast<size_t>(member)]; });
    }
    for (const auto& count : calls) EXPECT_EQ(count, 200);
  }
}

TEST(CpuThreadTeam, AnExceptionReachesTheCallerAndTheTeamLivesOn) {
  cpu::ThreadTeam team(3);
  const auto fail = [](int member) {
    if (member == 2) throw std::runtime_error("member 2");
  };
  EXPECT_THROW(team.run(fail), std::runtime_error);
  std::atomic<int> calls = 0;
  team.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 3);
}

TEST(CpuThreadTeam, CoresOfTheMachineAreDistinct) {
  std::vector<int> cores = cpu::cores_of_machine();
  EXPECT_FALSE(cores.empty());
  std::sort(cores.begin(), cores.end());
  EXPECT_EQ(std::adjacent_find(cores.begin(), cores.end()), cores.end());
}

// More members than cores, ragged shapes, every mask: always the bits of one thread.
TEST(CpuParallel, HasTheBitsOfOneThread) {
  const cpu::AttendShape shapes[] = {{1, 900, 8, 2, 16, 16, DType::kF32, 0.25F},
                                     {700, 300, 3, 3, 20, 12, DType::kF32, 0.25F},
                                     {5000, 40, 2, 1, 8, 8, DType::kBF16, 0.25F}};
  for (const cpu::AttendShape& shape : shapes) {
    for (const bool causal : {false, true}) {
      Case c(shape, 21);
      if (causal) c.make_causal(shape.kv_rows - shape.q_rows);
      cpu::Workspace workspace;
      const State one = run(c, workspace);
      for (const int threads : {1, 2, 3, 8}) {
        cpu::ThreadTeam team(threads);
        cpu::ParallelKernels kernels(team, {});
        State many(shape);
        kernels.attend(shape, c.q.view(), c.k.view(), c.v.view(), c.span_data(), many.view());
        EXPECT_TRUE(many == one) << shape.q_rows << " rows on " << threads;
      }
    }
  }
}

TEST(CpuMemory, CopiesAnySizeAndAlignment) {
  const cpu::CacheSizes tiny{
      .l1_bytes = 64, .l2_bytes = 64, .l3_bytes = 256};  // streams from 129 B
  for (const int64_t bytes : {0, 1, 63, 64, 65, 128, 129, 200, 1000, 70001}) {
    for (const int64_t offset : {0, 1, 15, 63}) {
      std::vector<unsigned char> from(static_cast<size_t>(bytes + offset));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 31 + 7);
      std::vector<unsigned char> to(static_cast<size_t>(bytes + 2 * offset + 1), 0xAA);
      for (const cpu::CacheSizes& caches : {tiny, cpu::CacheSizes{}}) {
        cpu::copy_bytes(to.data() + offset, from.data() + offset, bytes, caches);
        ASSERT_TRUE(std::equal(from.begin() + offset, from.end(), to.begin() + offset));
        for (int64_t i = 0; i < offset; ++i) ASSERT_EQ(to[static_cast<size_t>(i)], 0xAA);
        ASSERT_EQ(to[static_cast<size_t>(bytes + offset)], 0xAA);
      }
    }
  }
}

}  // namespace
}  // namespace ring::test
