// What is taken from NCCL's own log into the context of results.
#include "kernels/cuda/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace ring::cuda {
namespace {

using testing::HasSubstr;

constexpr const char* kLog =
    "a:1:2 [0] NCCL INFO NCCL version 2.19.3+cuda12.2\n"
    "a:1:2 [0] NCCL INFO comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 1 busId 1e000 - Init START\n"
    "a:1:2 [0] NCCL INFO Using network IB\n"
    "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n"
    "a:1:2 [0] NCCL INFO 24 coll channels, 0 nvls channels, 32 p2p channels, 16 p2p channels per "
    "peer\n";

TEST(NcclLog, TellsChannelsAndTransports) {
  const auto facts = nccl_log_facts(kLog);
  EXPECT_EQ(facts.at("nccl channels"), "24");
  EXPECT_EQ(facts.at("nccl message channels"), "32, 16 a peer");
  EXPECT_EQ(facts.at("nccl network"), "IB");
  EXPECT_THAT(facts.at("nccl transports"), HasSubstr("P2P/CUMEM/read"));
  EXPECT_TRUE(nccl_log_facts("nothing of NCCL's\n").empty());
}

TEST(NcclLog, HasAFileOfItsOwnUnlessTheEnvironmentNamesOne) {
  unsetenv("NCCL_DEBUG");
  setenv("NCCL_MAX_NCHANNELS", "4", 1);
  std::string path;
  {
    const NcclLog log;
    ASSERT_STREQ(std::getenv("NCCL_DEBUG"), "INFO");
    path = std::getenv("NCCL_DEBUG_FILE");
    std::ofstream(path) << kLog;
    EXPECT_EQ(log.facts().at("nccl channels"), "24");
    EXPECT_EQ(log.facts().at("nccl variables"), "NCCL_MAX_NCHANNELS=4");
  }
  EXPECT_FALSE(std::ifstream(path).good());  // It is gone, and so are the variables.
  EXPECT_EQ(std::getenv("NCCL_DEBUG"), nullptr);
  path = testing::TempDir() + "/ringscope-nccl-log-test";
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_FILE", (path + "-%p").c_str(), 1);
  const std::string own = path + "-" + std::to_string(getpid());
  std::ofstream(own) << kLog;
  {
    const NcclLog log;
    EXPECT_EQ(log.facts().at("nccl channels"), "24");
  }
  EXPECT_TRUE(std::ifstream(own).good());  // It is the user's.
  for (const char* variable : {"NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_MAX_NCHANNELS"})
    unsetenv(variable);
  std::remove(own.c_str());
}

}  // namespace
}  // namespace ring::cuda
