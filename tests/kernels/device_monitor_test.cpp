// What samples of devices come to: facts that name who was slow and why, counters beside a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cuda/cuda_device.h"

namespace ring::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

DeviceSample sample(int device, int64_t time_ns, double clock_mhz, int64_t reasons = 0) {
  DeviceSample sample;
  sample.device = device;
  sample.time_ns = time_ns;
  sample.sm_clock_mhz = clock_mhz;
  sample.throttle_reasons = reasons;
  sample.power_w = 100 + device;
  return sample;
}

TEST(DeviceMonitor, SummaryNamesTheSlowDeviceAndItsReason) {
  auto facts = monitor_summary({sample(0, 1, 1410), sample(1, 1, 1200, 0x4 | 0x20),
                                sample(2, 1, 1405), sample(0, 2, 210, 0x1)});
  EXPECT_EQ(facts.at(std::string(kHeldDownFact)), "gpu 1: power cap, software thermal");
  // The clock of an idle device says nothing.
  EXPECT_EQ(facts.at("gpu clock"),
            "1200 to 1410 MHz, gpu 1 slowest: 1200 where the fastest has 1410");
  EXPECT_EQ(facts.at("gpu power"), "102 W");
  EXPECT_FALSE(facts.contains("gpu memory"));  // Nobody told.
  facts = monitor_summary({sample(0, 1, 1410), sample(1, 1, 1400)});
  EXPECT_EQ(facts.at(std::string(kHeldDownFact)), kHeldDownByNothing);
  EXPECT_THAT(facts.at("gpu clock"), Not(HasSubstr("slowest")));
  EXPECT_TRUE(monitor_summary({}).empty());
}

TEST(DeviceMonitor, CountersAreOnTheClockOfTheTimeline) {
  std::vector<DeviceSample> samples;
  for (int64_t i = 0; i < 6; ++i)
    samples.push_back(sample(3, i * 10, 1000 + static_cast<double>(i)));
  // From 15 ns to 35 ns: those inside, the one before and the one after.
  const std::vector<Counter> counters = sampled_counters(samples, 15, 20'000);
  ASSERT_EQ(counters.size(), 3U);  // Clock, power, reasons; nobody told the others.
  EXPECT_EQ(counters[0].name, "SM clock");
  EXPECT_EQ(counters[0].unit, "MHz");
  EXPECT_EQ(counters[0].device, 3);
  ASSERT_EQ(counters[0].points.size(), 4U);
  EXPECT_EQ(counters[0].points.front().time_ps, -5'000);
  EXPECT_EQ(counters[0].points.front().value, 1001);
  EXPECT_EQ(counters[0].points.back().time_ps, 25'000);
}

}  // namespace
}  // namespace ring::cuda
