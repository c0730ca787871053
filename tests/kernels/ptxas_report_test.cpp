// What the compiler for GPUs says about the kernels: registers, spills, shared memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cuda/forward.h"
#include "kernels/cuda/hopper_forward.h"

namespace ring {
namespace {

struct Report {
  std::string function, architecture;
  int spilled_bytes = 0, registers = 0;
};

[[maybe_unused]] std::vector<Report> read_reports(const std::filesystem::path& file) {
  static const std::regex entry("Compiling entry function '([^']*)' for '([^']*)'");
  static const std::regex spill("(\\d+) bytes spill stores, (\\d+) bytes spill loads");
  static const std::regex used("Used (\\d+) registers");
  std::vector<Report> reports;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::smatch match;
    if (std::regex_search(line, match, entry)) {
      reports.push_back({match[1], match[2]});
    } else if (!reports.empty() && std::regex_search(line, match, spill)) {
      reports.back().spilled_bytes = std::stoi(match[1]) + std::stoi(match[2]);
    } else if (!reports.empty() && std::regex_search(line, match, used)) {
      reports.back().registers = std::stoi(match[1]);
    }
  }
  return reports;
}

/// Reports of all kernels, or none where there is no compiler for GPUs.
std::vector<Report> all_reports() {
  std::vector<Report> all;
#ifdef RING_PTXAS_REPORTS
  for (const auto& entry : std::filesystem::directory_iterator(RING_PTXAS_REPORTS)) {
    if (entry.path().extension() != ".ptxas") continue;
    const std::vector<Report> reports = read_reports(entry.path());
    all.insert(all.end(), reports.begin(), reports.end());
  }
#endif
  return all;
}

/// The numbers in "ForwardConfigI...Li128ELi64E..." of a mangled name, blocks per SM last.
std::vector<int> numbers_of(const std::string& function) {
  static const std::regex number("Li(\\d+)E");
  std::vector<int> numbers;
  for (std::sregex_iterator it(function.begin(), function.end(), number), end; it != end; ++it)
    numbers.push_back(std::stoi((*it)[1]));
  return numbers;
}

constexpr int kRegistersOfSm = 65536;

TEST(PtxasReport, KernelsOfAllArchitecturesSpillNothingThatMatters) {
  const std::vector<Report> reports = all_reports();
  if (reports.empty()) GTEST_SKIP() << "no CUDA toolkit was found when this was configured";
  std::map<std::string, int> by_architecture;
  for (const Report& report : reports) {
    ++by_architecture[report.architecture];
    // Two words wait in memory while the state is loaded, before the main loop (D 128 on sm_90).
    EXPECT_LE(report.spilled_bytes, 24) << report.function << " for " << report.architecture;
    EXPECT_GT(report.registers, 0) << report.function;
  }
  for (const char* architecture : {"sm_80", "sm_86", "sm_90", "sm_90a"})
    EXPECT_GT(by_architecture[architecture], 0) << architecture;
}

TEST(PtxasReport, ForwardKernelsFitAsManyBlocksAsDesigned) {
  const std::vector<Report> reports = all_reports();
  if (reports.empty()) GTEST_SKIP() << "no CUDA toolkit was found when this was configured";
  int seen = 0, seen_128 = 0;
  for (const Report& report : reports) {
    // The name of the kernel with its length, as mangled: not that of another which ends the same.
    if (report.function.find("14forward_kernel") == std::string::npos) continue;
    ++seen;
    const std::vector<int> numbers = numbers_of(report.function);
    ASSERT_EQ(numbers.size(), 6U) << report.function;
    const int rows = numbers[2], keys = numbers[3], threads = numbers[4] * 32, blocks = numbers[5];
    const int rounded = (report.registers + 7) / 8 * 8;
    EXPECT_LE(rounded * threads * blocks, kRegistersOfSm) << report.function;
    // Shared memory of an SM: 164 KB on sm_80, of which every block costs 1 KB more.
    const int shared = 2 * (rows * numbers[0] + keys * (numbers[0] + numbers[1]));
    EXPECT_LE((shared + 1024) * blocks, 164 * 1024) << report.function;
    if (numbers[0] == 128 && rows == 128 && keys == 64) {
      ++seen_128;
      EXPECT_EQ(shared, 64 * 1024);
      EXPECT_EQ(blocks, 2);
    }
  }
  EXPECT_GT(seen, 0);
  EXPECT_GT(seen_128, 0);
}

TEST(PtxasReport, HopperKernelsKeepTheirProductsAsynchronous) {
  const std::vector<Report> reports = all_reports();
  if (reports.empty()) GTEST_SKIP() << "no CUDA toolkit was found when this was configured";
  using Config = cuda::HopperConfig<simt::Bf16, 128, 128>;
  int seen = 0;
  for (const Report& report : reports) {
    if (report.function.find("hopper_forward_kernel") == std::string::npos) continue;
    ++seen;
    EXPECT_EQ(report.architecture, "sm_90a");
    EXPECT_EQ(report.spilled_bytes, 0) << report.function;
    EXPECT_LE(report.registers, Config::kRegisters) << report.function;
  }
  EXPECT_EQ(seen, 4);  // Head dims 64 and 128 in both dtypes.
  constexpr int kSharedOfBlock = 227 * 1024;
  EXPECT_LE(Config::kSharedBytes, kSharedOfBlock);
#ifdef RING_PTXAS_REPORTS
  // Where ptxas cannot follow the registers of a product it waits for it at once, and says so.
  std::ifstream in(std::filesystem::path(RING_PTXAS_REPORTS) / "hopper_forward.ptxas");
  for (std::string line; std::getline(in, line);)
    EXPECT_EQ(line.find("serialized"), std::string::npos) << line;
#endif
}

TEST(PtxasReport, BackwardKernelsFitAsManyBlocksAsDesigned) {
  const std::vector<Report> reports = all_reports();
  if (reports.empty()) GTEST_SKIP() << "no CUDA toolkit was found when this was configured";
  int seen = 0;
  for (const Report& report : reports) {
    if (report.function.find("20backward_") == std::string::npos) continue;
    ++seen;
    const std::vector<int> numbers = numbers_of(report.function);
    ASSERT_EQ(numbers.size(), 7U) << report.function;
    const int rows = numbers[2], keys = numbers[3], threads = numbers[4] * 32, blocks = numbers[6];
    EXPECT_LE((report.registers + 7) / 8 * 8 * threads * blocks, kRegistersOfSm) << report.function;
    const int shared = (rows + keys) * 2 * (numbers[0] + numbers[1]) + rows * 8;
    EXPECT_LE((shared + 1024) * blocks, 164 * 1024) << report.function;
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace ring
