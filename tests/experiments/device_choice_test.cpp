// What a run on some of the cores is predicted from.
#include "experiments/device_choice.h"

#include <gtest/gtest.h>

namespace ring::testing {
namespace {

Machine four_cores() {
  Machine machine;
  machine.transfer = TransferKind::kReceiverCopy;
  machine.attend_contention = 1.3;
  for (const char* name : {"core0", "core1", "core2", "core3"}) {
    machine.processors.push_back(machine.topology.add_node({name, NodeKind::kCore, 0}));
  }
  return machine;
}

TEST(DeviceChoice, FewerCoresDisturbEachOtherLess) {
  const Machine two = with_cores(four_cores(), 2);
  EXPECT_EQ(two.processors, (std::vector<int>{0, 1}));
  EXPECT_DOUBLE_EQ(two.attend_contention, 1.1);
  const Machine one = with_cores(four_cores(), 1);
  EXPECT_EQ(one.processors, std::vector<int>{0});
  EXPECT_DOUBLE_EQ(one.attend_contention, 1.0);
}

TEST(DeviceChoice, OtherMachinesStayAsTheyAre) {
  EXPECT_EQ(with_cores(four_cores(), 4).processors.size(), 4U);
  EXPECT_DOUBLE_EQ(with_cores(four_cores(), 9).attend_contention, 1.3);
  Machine linked = four_cores();
  linked.transfer = TransferKind::kLinks;
  EXPECT_EQ(with_cores(linked, 1).processors.size(), 4U);
}

}  // namespace
}  // namespace ring::testing
