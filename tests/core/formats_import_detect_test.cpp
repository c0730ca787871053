#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sstream>

#include "core/formats/chrome_trace.h"
#include "core/formats/hf_config.h"
#include "core/formats/import/bench_log.h"
#include "core/formats/import/detect.h"
#include "core/formats/import/kernel_trace.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/nccl_info_log.h"
#include "core/formats/import/nccl_tests_log.h"
#include "core/formats/import/nccl_xml.h"
#include "core/formats/import/nsys_kernels.h"
#include "core/formats/import/topo_matrix.h"
#include "core/formats/machine_json.h"
#include "core/formats/run_json.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::HasSubstr;

struct Sample {
  FileKind kind;
  std::string text;
};

/// One small file of each kind.
std::vector<Sample> samples() {
  const std::string table =
      "# nThread 1\n#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  "
      "busbw "
      " #wrong\n";
  return {
      {FileKind::kTopoMatrix,
       "$ nvidia-smi topo -m\n\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"},
      {FileKind::kNcclTopology, "<!-- x -->\n<system version=\"1\"><cpu numaid=\"0\"/></system>\n"},
      {FileKind::kNcclGraphs, "<graphs version=\"1\"><graph id=\"0\" nchannels=\"0\"/></graphs>\n"},
      {FileKind::kNcclTests,
       table + "h:1:2 [0] NCCL INFO x\n 1024 256 float sum -1 5.0 0.2 0.2 0 5.0 0.2 0.2 0\n"},
      {FileKind::kNcclInfo, table + "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 2 busId 1a\n"},
      {FileKind::kP2pBandwidth,
       "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n 0 9.0 1.0\n 1 1.0 9.0\n"},
      {FileKind::kNvbandwidth,
       "nvbandwidth Version: v0\nRunning a.\n x bandwidth (GB/s)\n 0\n 0 5.0\nSUM a 5.0\n"},
      {FileKind::kPerftest,
       "[me@box ~]$ ib_write_bw\n RDMA_Write BW Test\n #bytes #iterations BW peak[Gb/sec] BW "
       "average[Gb/sec] MsgRate[Mpps]\n 64 10 8.0 8.0 1.0\n"},
      {FileKind::kSuperbench, "gpu0_to_gpu1_write_by_sm 10.5\n"},
      {FileKind::kPairBandwidth,
       "[[0, 1], [1, 0]]\nSIZE 1000, REAL_BD 2.0 GB/s, BD/PAIR 1.0 GB/s, time 1.0e-04 s, comm_vol "
       "1 MB\n"},
      {FileKind::kHfConfig,
       " \n {\"num_attention_heads\": 4, \"hidden_size\": 64, \"num_hidden_layers\": 2}"},
      {FileKind::kKernelTrace,
       R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "f", "ts": 1, "dur": 2}]})"},
      {FileKind::kNsysKernels,
       "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
       "100.0,10,1,10.0,10.0,10,10,0.0,f\n"},
      {FileKind::kAttentionBench,
       "da_config: SP=(1,2),Sg=(8,8),S=(16,16),Nh=(1,1),bs=1,D=8,causal=False:\n# a, fwd\n"
       "mfu: 1.0 Tflops/s, 2.0 iter/s, 5.000e-01 s/iter\n"},
      {FileKind::kTrainingBench,
       "Model. 8 GPUs.\n| Parallelism | Sequence Length | TPS/GPU |\n|---|---|---|\n| CP 2 | 64 | "
       "5 |\n"},
      {FileKind::kRunFile, run_json({})},
      {FileKind::kMachineFile, machine_json({})},
  };
}

TEST(Detect, EveryKindIsToldByItsContentAndRead) {
  const TemporaryFolder folder;
  for (const Sample& sample : samples()) {
    EXPECT_EQ(name(detect(sample.text)), name(sample.kind));
    put(folder / "file", sample.text);
    const ImportReport report = import_file(folder / "file");
    EXPECT_EQ(name(report.kind), name(sample.kind));
    EXPECT_FALSE(describe(sample.kind).empty());
    EXPECT_TRUE(!report.findings.empty() || sample.kind == FileKind::kRunFile) << name(sample.kind);
  }
}

TEST(Detect, ForeignFilesAreRefused) {
  const TemporaryFolder folder;
  for (const std::string& text :
       {std::string(), std::string("hello\n"), std::string("<html></html>")}) {
    EXPECT_EQ(detect(text), FileKind::kUnknown);
    put(folder / "file", text);
    EXPECT_THAT(error_of([&] { import_file(folder / "file"); }),
                HasSubstr("of no kind that can be read"));
  }
}

/// Calls every reader; each either reads the text or refuses it.
void read_with_all(const std::string& text) {
  const std::string f = "f";
  const auto quietly = [](auto read) {
    try {
      read();
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::kUsage);
    }
  };
  detect(text);
  quietly([&] { parse_topo_matrix(text, f); });
  quietly([&] { parse_nccl_topology(text, f); });
  quietly([&] { parse_nccl_graphs(text, f); });
  quietly([&] { parse_nccl_tests(text, f); });
  quietly([&] { parse_nccl_info(text, f); });
  quietly([&] { parse_p2p_bandwidth(text, f); });
  quietly([&] { parse_nvbandwidth(text, f); });
  quietly([&] { parse_perftest(text, f); });
  quietly([&] { parse_superbench(text, f); });
  quietly([&] { parse_pair_bandwidth(text, f); });
  quietly([&] { parse_hf_config(text, f); });
  quietly([&] { parse_nsys_kernels(text, f); });
  quietly([&] { parse_attention_bench(text, f); });
  quietly([&] { parse_training_bench(text, f); });
  quietly([&] { parse_run(text, f); });
  quietly([&] { parse_machine(text, f); });
  quietly([&] {
    std::istringstream input(text);
    timeline_of(parse_kernel_trace(input, f));
  });
}

/// Files that were cut, had bytes changed or lines doubled: no reader crashes on them.
RC_GTEST_PROP(Detect, SpoiltFilesAreReadOrRefused, ()) {
  const std::vector<Sample> all = samples();
  std::string text = all[*rc::gen::inRange<size_t>(0, all.size())].text;
  for (int i = *rc::gen::inRange(1, 6); i > 0 && !text.empty(); --i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size());
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(*rc::gen::inRange(0, 256));
        break;
      case 2:
        text.insert(at, text.substr(at, 40));
        break;
      default:
        text.replace(at, 1, std::to_string(*rc::gen::arbitrary<int64_t>()));
    }
  }
  read_with_all(text);
}

}  // namespace
}  // namespace ring
