#include "core/program_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "core/error.h"
#include "core/program_text.h"
#include "core/strategy.h"

namespace ring {
namespace {

using testing::HasSubstr;

std::vector<Fault> faults_of(const std::string& text) { return check_program(parse_program(text)); }

/// One exchange round the ring; `order` writes the lines of one rank.
template <typename Order>
std::string exchange(int ranks, Order order) {
  std::string text = fmt::format("ranks {}\nlanes 2\n", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    text += order(rank, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
  }
  return text;
}

std::string all_send_first(int rank, int to, int from) {
  return fmt::format("r{0} L0 send to={1} msg=0 bytes=8\nr{0} L0 receive from={2} msg=0 bytes=8\n",
                     rank, to, from);
}

std::string even_sends_first(int rank, int to, int from) {
  const std::string send = fmt::format("r{} L0 send to={} msg=0 bytes=8\n", rank, to);
  const std::string receive = fmt::format("r{} L0 receive from={} msg=0 bytes=8\n", rank, from);
  return rank % 2 == 0 ? send + receive : receive + send;
}

std::string grouped(int rank, int to, int from) {
  return fmt::format("r{0} L0 send to={1} msg=0 bytes=8\nr{0} L1 receive from={2} msg=0 bytes=8\n",
                     rank, to, from);
}

TEST(ProgramCheckFaults, F25AllSendFirstWithRendezvousSendsDeadlocks) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    const auto faults = faults_of(exchange(ranks, all_send_first));
    ASSERT_EQ(faults.size(), 1u) << ranks;
    EXPECT_EQ(faults[0].kind, FaultKind::kDeadlock);
    EXPECT_EQ(faults[0].ops.size(), static_cast<size_t>(ranks)) << "the cycle of all ranks";
    EXPECT_THAT(faults[0].message, HasSubstr("r0:0 send"));
    EXPECT_TRUE(faults_of(exchange(ranks, grouped)).empty()) << ranks;
    EXPECT_TRUE(faults_of(exchange(ranks, even_sends_first)).empty()) << ranks;
  }
}

TEST(ProgramCheck, AllSendFirstWithEagerSendsFinishes) {
  EXPECT_TRUE(faults_of("ranks 2\nlanes 1\n"
                        "r0 L0 send eager to=1 msg=0 bytes=8\nr0 L0 receive from=1 msg=0 bytes=8\n"
                        "r1 L0 send eager to=0 msg=0 bytes=8\nr1 L0 receive from=0 msg=0 bytes=8\n")
                  .empty());
}

TEST(ProgramCheck, AnOpenRingAndAMissingReceiveAreNamed) {
  const auto open = faults_of("ranks 2\nr0 L1 receive from=1 msg=3 bytes=8\n");
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].kind, FaultKind::kUnmatchedReceive);
  EXPECT_THAT(open[0].message, HasSubstr("message 3 from rank 1"));
  const auto missing = faults_of("ranks 2\nr0 L1 send to=1 msg=3 bytes=8\n");
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].kind, FaultKind::kUnmatchedSend);
}

TEST(ProgramCheck, SizesMustAgree) {
  const auto faults =
      faults_of("ranks 2\nr0 L1 send to=1 msg=0 bytes=8\nr1 L2 receive from=0 msg=0 bytes=9\n");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, FaultKind::kSizeMismatch);
}

TEST(ProgramCheck, ABufferReturnedTooLateIsACycle) {
  // Each rank returns its only buffer after a message that itself needs that buffer.
  std::string text = "ranks 2\nlanes 3\n";
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    text += fmt::format(
        "r{0} L2 receive from={1} msg=0 bytes=8 buffer=0\n"
        "r{0} L1 send to={1} msg=0 bytes=8\n"
        "r{0} L1 send to={1} msg=1 bytes=8 buffer=0 after=r{0}:0\n"
        "r{0} L2 receive from={1} msg=1 bytes=8 buffer=0 after=r{0}:2\n",
        rank, peer);
  }
  const auto faults = faults_of(text);
  ASSERT_FALSE(faults.empty());
  EXPECT_EQ(faults[0].kind, FaultKind::kDeadlock);
  EXPECT_EQ(faults[0].ops.size(), 4u);
}

TEST(ProgramCheck, ABufferOverwrittenWhileReadIsARace) {
  const std::string head =
      "ranks 2\nlanes 3\n"
      "r1 L1 send to=0 msg=0 bytes=8\nr1 L1 send to=0 msg=1 bytes=8\n"
      "r0 L2 receive from=1 msg=0 bytes=8 buffer=0\n"
      "r0 L0 attend buffer=0 after=r0:0\n";
  const auto faults = faults_of(head + "r0 L2 receive from=1 msg=1 bytes=8 buffer=0\n");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, FaultKind::kBufferRace);
  EXPECT_TRUE(faults_of(head + "r0 L2 receive from=1 msg=1 bytes=8 buffer=0 after=r0:1\n").empty());
}

TEST(ProgramCheck, AReadThatDoesNotWaitIsARace) {
  const auto faults = faults_of(
      "ranks 2\nlanes 3\nr1 L1 send to=0 msg=0 bytes=8\n"
      "r0 L2 receive from=1 msg=0 bytes=8 buffer=0\nr0 L0 attend buffer=0\n");
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].kind, FaultKind::kBufferRace);
}

class BrokenPassKv : public testing::Test {
 protected:
  BrokenPassKv() {
    Problem problem;
    problem.mask = Mask::causal(32);
    Tuning tuning;
    tuning.ranks = 4;
    tuning.block_tokens = 4;
    program_ = plan(problem, tuning);
  }
  Op& first_of(OpKind kind) {
    for (Op& op : program_.rank_programs[1].ops) {
      if (op.kind == kind) return op;
    }
    throw std::logic_error("none");
  }
  FaultKind first_fault() { return check_program(program_).at(0).kind; }
  RingProgram program_;
};

TEST_F(BrokenPassKv, IsSoundBefore) { EXPECT_TRUE(check_program(program_).empty()); }

TEST_F(BrokenPassKv, LostPairsAreFound) {
  Op& op = first_of(OpKind::kAttend);
  op.head_end -= 1;
  EXPECT_EQ(first_fault(), FaultKind::kPairsMissing);
}

TEST_F(BrokenPassKv, RepeatedPairsAreFound) {
  Op& op = first_of(OpKind::kAttend);
  OpBatch batch;
  Op again = op;
  again.lane_position = 0;
  for (const Op& other : program_.rank_programs[1].ops) {
    again.lane_position += other.lane == op.lane ? 1 : 0;
  }
  program_.rank_programs[1].ops.push_back(again);
  EXPECT_EQ(first_fault(), FaultKind::kPairsRepeated);
}

TEST_F(BrokenPassKv, WrongPairCountsAreFound) {
  first_of(OpKind::kAttend).visible_pairs += 1;
  EXPECT_EQ(first_fault(), FaultKind::kBadOp);
}

TEST_F(BrokenPassKv, WrongContentsAreFound) {
  first_of(OpKind::kReceive).kv_shard = 2;
  EXPECT_EQ(first_fault(), FaultKind::kWrongContents);
}

TEST_F(BrokenPassKv, ALostDependencyIsARace) {
  for (Op& op : program_.rank_programs[1].ops) {
    if (op.kind == OpKind::kAttend) op.dep_count = 0;
  }
  EXPECT_EQ(first_fault(), FaultKind::kBufferRace);
}

TEST(ProgramText, RefusesWithTheLine) {
  const auto message = [](const char* text) -> std::string {
    try {
      parse_program(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("ranks 2\nr0 L0 jump\n"), HasSubstr("line 2: 'jump' is no kind"));
  EXPECT_THAT(message("ranks 0\n"), HasSubstr("line 1: ranks 0"));
  EXPECT_THAT(message("ranks 2\nr5 L0 compute time=1us\n"), HasSubstr("rank 5"));
  EXPECT_THAT(message("ranks 2\nr0 L9 compute time=1us\n"), HasSubstr("lane 9"));
  EXPECT_THAT(message("ranks 2\nr0 L0 compute time=1\n"), HasSubstr("unit is missing"));
  EXPECT_THAT(message("ranks 2\nr0 L0 compute after=r0:3\n"), HasSubstr("does not stand before"));
  EXPECT_THAT(message("ranks 2\nr0 L0 compute after=r1:0\n"), HasSubstr("no op of the same rank"));
  EXPECT_THAT(message("ranks 2\nr0 L0 compute speed=3\n"), HasSubstr("key 'speed'"));
  EXPECT_THAT(message(""), HasSubstr("no 'ranks N' line"));
  // What a few bytes state must not take gigabytes.
  EXPECT_THAT(message("ranks 10000000\nr0 L0 compute time=1us\n"), HasSubstr("ranks 10000000 is"));
  EXPECT_THAT(message("ranks 300\nlanes 60000\nr0 L0 compute time=1us\n"),
              HasSubstr("300 ranks of 60000 lanes are more than"));
}

}  // namespace
}  // namespace ring
