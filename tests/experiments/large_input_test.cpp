// Inputs of a hundred megabytes, and hostile ones: read in bounded memory, or refused.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

#include "tests/experiments/process.h"

extern char** environ;

namespace ring::testing {
namespace {

constexpr int64_t kLarge = 100'000'000;

struct Usage {
  int code = -1;
  int64_t peak_bytes = 0;
};

/// Of a process without the shadow of a sanitizer, which takes more than what is measured.
bool is_within(const Usage& usage, int64_t most_bytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return true;
#endif
  return usage.peak_bytes < most_bytes;
}

/// `ringscope import auto PATH` with its output thrown away.
Usage import_of(const std::string& path) {
  std::vector<std::string> words{RING_RINGSCOPE, "import", "auto", path};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {1, 2}) {
    posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, RING_RINGSCOPE, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          int64_t{usage.ru_maxrss} * 1024};
}

/// `head`, then as many `line`s as make a hundred megabytes, then `tail`.
std::string large_file(const TemporaryFolder& folder, const std::string& head,
                       const std::string& line, const std::string& tail) {
  const std::string path = folder.file("large");
  std::ofstream file(path, std::ios::binary);
  std::string many;
  while (many.size() < 1'000'000) many += line;
  file << head;
  for (int64_t size = 0; size < kLarge; size += std::ssize(many)) file << many;
  file << tail;
  return path;
}

/// A trace is read as a stream: what is kept are the kernels of the GPU, of which it has few.
TEST(LargeInput, ATraceTakesTheMemoryOfItsKernels) {
  const TemporaryFolder folder;
  const Usage usage = import_of(large_file(
      folder, "{\"traceEvents\":[\n",
      R"({"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":2,"ts":12.5,"dur":3,"args":{}},)"
      "\n",
      R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":{"stream":7}}]})"));
  EXPECT_EQ(usage.code, 0);
  EXPECT_TRUE(is_within(usage, 64'000'000)) << usage.peak_bytes;
}

/// Logs are kept whole with an entry for each line: about twice to four times their size.
TEST(LargeInput, ALogTakesAFewTimesItsSize) {
  const TemporaryFolder folder;
  const std::string line =
      "box:11:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read\n";
  const Usage info = import_of(
      large_file(folder, "box:11:12 [0] NCCL INFO comm 0x1 rank 0 nranks 2 busId 1a\n", line, ""));
  EXPECT_EQ(info.code, 0);
  EXPECT_TRUE(is_within(info, 5 * kLarge)) << info.peak_bytes;
  const Usage tests = import_of(
      large_file(folder,
                 "# Collective test starting: all_gather_perf\n#  size  count  type  redop  root  "
                 "time  algbw  busbw  #wrong  time  "
                 "algbw  busbw  #wrong\n",
                 " 4000000 250000 float none -1 120.0 33.33 25.00 0 120.0 33.33 25.00 0\n", ""));
  EXPECT_TRUE(is_within(tests, 10 * kLarge)) << tests.peak_bytes;
  EXPECT_TRUE(tests.code == 0 || tests.code == 2);
}

/// The beginning of a file of each kind whose like is small, from which its kind is told.
std::vector<std::pair<std::string, std::string>> beginnings_of_documents() {
  std::vector<std::pair<std::string, std::string>> beginnings;
  for (const char* seed :
       {"topo_matrix/access.txt", "topo_matrix/mixed.txt", "topo_matrix/rocm.txt",
        "nccl_topology/pair.xml", "nccl_graphs/ring.xml", "p2p_bandwidth/two.txt",
        "nvbandwidth/pair.txt", "perftest/write.txt", "superbench/copy.txt",
        "pair_bandwidth/pair.txt", "hf_config/mla.json", "nsys_kernels/sum.csv",
        "attention_bench/one.log", "training_bench/table.md"}) {
    beginnings.emplace_back(seed, read_text(std::string(RING_SOURCE_DIR) + "/tests/fuzz/" + seed));
  }
  return beginnings;
}

TEST(LargeInput, DocumentsThatLargeAreRefusedUnread) {
  for (const auto& [name, beginning] : beginnings_of_documents()) {
    const TemporaryFolder folder;
    const std::string path = folder.write("large", beginning);
    EXPECT_EQ(import_of(path).code, 0) << name;
    std::filesystem::resize_file(path, kLarge);  // Zeros that take no room on the disk.
    const Usage usage = import_of(path);
    EXPECT_EQ(usage.code, 2) << name;
    EXPECT_TRUE(is_within(usage, 64'000'000)) << name << " " << usage.peak_bytes;
  }
}

TEST(LargeInput, HostileFilesAreRefused) {
  const TemporaryFolder folder;
  std::string deep = "{\"traceEvents\":";
  for (int i = 0; i < 100'000; ++i) deep += "[";
  std::string deep_xml;
  for (int i = 0; i < 100'000; ++i) deep_xml += "<system>";
  const std::vector<std::string> texts{
      deep,
      "{" + deep.substr(15),
      deep_xml,
      "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]><system>&c;</system>",
      R"({"num_attention_heads":1000000000000,"hidden_size":64,"num_hidden_layers":9000000000000})",
      R"({"num_attention_heads":8,"hidden_size":64,"num_hidden_layers":1000000000})",
      "<system version='1'><cpu numaid='0'><pci busid='a' class='0x030200'><gpu dev='0' sm='80' "
      "rank='0'><nvlink target='b' count='2000000000'/></gpu></pci></cpu></system>",
      "h:1:2 [0] NCCL INFO comm 0x1 rank 2147483647 nranks 99999999999 busId 1a\n",
      std::string("\x1f\x8b\x08\x00garbage", 11),
      std::string(2'000'000, 'x') + " busbw GPU0",
  };
  for (const std::string& text : texts) {
    const Usage usage = import_of(folder.write("hostile", text));
    EXPECT_TRUE(usage.code == 2 || usage.code == 0) << usage.code << " " << text.substr(0, 60);
    EXPECT_TRUE(is_within(usage, 200'000'000)) << usage.peak_bytes << ' ' << text.substr(0, 60);
  }
}

}  // namespace
}  // namespace ring::testing
