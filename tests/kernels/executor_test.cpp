// Runs: what is recorded, that runs repeat, stop, and give the same bytes.
#include "kernels/executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/program_text.h"
#include "core/strategy.h"
#include "tests/kernels/allocation_count.h"
#include "tests/kernels/executor_fixture.h"

namespace ring {
namespace {

using testing_support::gather_bytes;

Problem small_problem(int64_t tokens) {
  Problem problem;
  problem.heads = 2;
  problem.kv_heads = 1;
  problem.head_dim = problem.head_dim_v = 16;
  problem.mask = Mask::causal(tokens);
  return problem;
}

Tuning small_tuning(int ranks) {
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.block_tokens = 16;
  tuning.blocks_per_message = 1;
  return tuning;
}

int64_t resident_pages() {
  int64_t size = 0, resident = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = -1;
  if (file != nullptr) std::fclose(file);
  return resident;
}

TEST(Executor, RecordsEveryOpInOrderAndWithinItsDependencies) {
  const Problem problem = small_problem(200);
  const RingProgram program = plan(problem, small_tuning(3));
  const SeededData data(1);
  CpuExecutor executor(program, data);
  const Timeline& timeline = executor.run();
  EXPECT_EQ(timeline.origin, TimelineOrigin::kMeasured);
  EXPECT_TRUE(timeline.is_complete);
  ASSERT_EQ(static_cast<int64_t>(timeline.slices.size()), program.op_count());
  std::map<OpId, const Slice*> by_op;
  const Slice* previous = nullptr;
  for (const Slice& slice : timeline.slices) {
    by_op[slice.op] = &slice;
    EXPECT_GE(slice.posted_ps, 0);
    EXPECT_LE(slice.posted_ps, slice.start_ps);
    EXPECT_LE(slice.start_ps, slice.end_ps);
    const bool is_same_lane =
        previous != nullptr && previous->op.rank == slice.op.rank && previous->lane == slice.lane;
    if (is_same_lane) {
      EXPECT_LE(previous->end_ps, slice.posted_ps);
    }
    previous = &slice;
  }
  ASSERT_EQ(by_op.size(), timeline.slices.size());
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankProgram& at = program.rank_programs[static_cast<size_t>(rank)];
    for (size_t i = 0; i < at.ops.size(); ++i) {
      const Slice& slice = *by_op.at({rank, static_cast<int64_t>(i)});
      EXPECT_EQ(slice.kind, at.ops[i].kind);
      for (const LanePoint& dep : at.deps_of(at.ops[i])) {
        for (size_t j = 0; j < at.ops.size(); ++j) {
          if (at.ops[j].lane != dep.lane || at.ops[j].lane_position != dep.position) continue;
          EXPECT_LE(by_op.at({rank, static_cast<int64_t>(j)})->end_ps, slice.posted_ps);
        }
      }
    }
  }
}

TEST(Executor, ThousandRunsAllocateNothingAndMemoryStaysFlat) {
  const RingProgram program = plan(small_problem(128), small_tuning(4));
  const SeededData data(2);
  ExecutorOptions options;
  for (const Bytes cache : {Bytes{0}, Bytes{1} << 20}) {  // Spans worked out again, and kept.
    options.span_cache_bytes = cache;
    CpuExecutor executor(program, data, options);
    executor.run();
    executor.run();
    const int64_t pages_before = resident_pages();
    const int64_t allocations_before = testing_support::allocation_count();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(executor.run().is_complete);
    EXPECT_EQ(testing_support::allocation_count(), allocations_before);
    if (testing_support::counts_allocations()) {
      EXPECT_LE(resident_pages(), pages_before + 16);
    }
  }
}

TEST(Executor, RepeatedRunsGiveTheSameBytes) {
  const Problem problem = small_problem(150);
  const RingProgram program = plan(problem, small_tuning(3));
  const SeededData data(3);
  CpuExecutor executor(program, data);
  executor.run();
  const auto first = gather_bytes(executor, problem);
  for (int i = 0; i < 20; ++i) {
    executor.run();
    ASSERT_EQ(gather_bytes(executor, problem), first);
  }
}

TEST(Executor, SpansWorkedOutInTheLaneGiveTheSameBytes) {
  const Problem problem = small_problem(150);
  Tuning tuning = small_tuning(3);
  tuning.partition = "striped:4";
  const RingProgram program = plan(problem, tuning);
  const SeededData data(4);
  std::vector<std::vector<std::byte>> outputs;
  for (const Bytes cache : {Bytes{0}, Bytes{200}, Bytes{1} << 20}) {
    ExecutorOptions options;
    options.span_cache_bytes = cache;
    CpuExecutor executor(program, data, options);
    executor.run();
    outputs.push_back(gather_bytes(executor, problem));
  }
  EXPECT_EQ(outputs[0], outputs[2]);
  EXPECT_EQ(outputs[1], outputs[2]);
}

// Deterministic mode: one result for every ring size, depth, message size, lane and core count.
TEST(Executor, DeterministicBytesDependOnlyOnTheProblemAndTheBlock) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Problem problem = small_problem(237);
    problem.dtype = dtype;
    const SeededData data(5);
    std::vector<std::byte> expected;
    for (const int ranks : {1, 2, 3, 4, 5, 8, 16}) {
      for (const char* partition : {"contiguous", "zigzag", "striped:16"}) {
        Tuning tuning = small_tuning(ranks);
        tuning.is_deterministic = true;
        tuning.partition = partition;
        tuning.pipeline_depth = 2 + ranks % 3;
        tuning.blocks_per_message = ranks % 4;
        tuning.lanes = 1 + ranks % 2;
        const RingProgram program = plan(problem, tuning);
        ExecutorOptions options;
        options.cores = 1 + ranks % 2;
        CpuExecutor executor(program, data, options);
        for (int run = 0; run < 3; ++run) {
          executor.run();
          const auto bytes = gather_bytes(executor, problem);
          if (expected.empty()) expected = bytes;
          ASSERT_EQ(bytes, expected) << ranks << " ranks, " << partition;
        }
      }
    }
  }
}

// Rank 1 waits for a message that would come after 600 ms.
TEST(Executor, StopsAtTheNextOpEndsLanesThatWaitAndCanRunAgain) {
  const RingProgram program = parse_program(
      "ranks 2\nlanes 1\n"
      "r0 L0 compute time=300ms\n"
      "r0 L0 compute time=300ms\n"
      "r0 L0 send to=1 msg=0 bytes=64\n"
      "r1 L0 receive from=0 msg=0 bytes=64 buffer=0\n");
  std::atomic<bool> interrupt{false};
  ExecutorOptions options;
  options.interrupt = &interrupt;
  const SeededData data(6);
  CpuExecutor executor(program, data, options);
  std::thread control_c([&interrupt] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    interrupt = true;
  });
  const Timeline& timeline = executor.run();
  control_c.join();
  EXPECT_FALSE(timeline.is_complete);
  EXPECT_LE(timeline.slices.size(), 1U);
  EXPECT_TRUE(executor.run().slices.empty());  // Still interrupted: nothing starts.
  interrupt = false;
  EXPECT_TRUE(executor.run().is_complete);
}

TEST(Executor, PlainProgramsMoveBytesAndTakeTheirTime) {
  const RingProgram program = parse_program(
      "ranks 2\nlanes 2\n"
      "r0 L0 compute time=2ms\n"
      "r0 L1 send to=1 msg=0 bytes=4096 after=r0:0\n"
      "r1 L1 receive from=0 msg=0 bytes=4096 buffer=0\n"
      "r1 L0 compute time=1ms after=r1:0\n");
  const SeededData data(7);
  CpuExecutor executor(program, data);
  const Timeline& timeline = executor.run();
  EXPECT_TRUE(timeline.is_complete);
  EXPECT_GE(timeline.makespan_ps(), 3'000'000'000);
}

TEST(Executor, RefusesProgramsThatCannotFinish) {
  const RingProgram program = parse_program(
      "ranks 2\nlanes 1\n"
      "r0 L0 send to=1 msg=0 bytes=64\n"
      "r0 L0 receive from=1 msg=0 bytes=64 buffer=0\n"
      "r1 L0 send to=0 msg=0 bytes=64\n"
      "r1 L0 receive from=0 msg=0 bytes=64 buffer=0\n");
  const SeededData data(8);
  EXPECT_THROW(CpuExecutor(program, data), Error);
}

TEST(Executor, RefusesAttentionWithoutAProblem) {
  const RingProgram program =
      parse_program("ranks 1\nlanes 1\nr0 L0 attend shard=0 kv=0..4 q=0..4\n");
  const SeededData data(9);
  EXPECT_THROW(CpuExecutor(program, data), Error);
}

// Extra memory per rank: `depth` receive buffers and the fp32 state with its output, nothing else.
TEST(Executor, F30MemoryIsTwoBlocksAndTheState) {
  Problem problem = small_problem(512);
  problem.dtype = DType::kBF16;
  Tuning tuning = small_tuning(4);
  tuning.blocks_per_message = 0;
  const RingProgram program = plan(problem, tuning);
  const SeededData data(10);
  const CpuExecutor executor(program, data);
  const Bytes shard = 128, heads = 2, dim = 16;
  const Bytes q = shard * heads * dim * 2, kv = shard * (dim + dim) * 2;
  const Bytes state = shard * heads * (dim + 2) * 4, out = shard * heads * (dim * 2 + 4);
  EXPECT_EQ(executor.storage_bytes(0), q + 3 * kv + state + out);
}

}  // namespace
}  // namespace ring
