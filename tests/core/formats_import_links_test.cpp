#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/formats/import/bench_log.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/nsys_kernels.h"
#include "core/formats/import/text_lines.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::HasSubstr;

const LinkFigure& figure(const LinkLog& log, LinkFigureKind kind, const std::string& from,
                         const std::string& to, const std::string& how) {
  for (const LinkFigure& f : log.figures) {
    if (f.kind == kind && f.from == from && f.to == to && f.how == how) return f;
  }
  ADD_FAILURE() << "no figure " << from << " " << to << " " << how;
  static const LinkFigure kNone;
  return kNone;
}

TEST(P2pBandwidth, EveryMatrixIsReadAndPeerAccessIsSaid) {
  const LinkLog log = parse_p2p_bandwidth(
      "Device: 0, Some GPU, pciBusID: 1\nDevice: 1, Some GPU, pciBusID: 2\n"
      "Device=0 CANNOT Access Peer Device=1\nDevice=1 CANNOT Access Peer Device=0\n"
      "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1\n"
      "     0 700.00   6.00\n     1   6.50 701.00\n"
      "Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1\n"
      "     0 700.00   9.00\n     1   9.10 701.00\n"
      "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1\n"
      "     0   1.50  12.00\n     1  13.00   1.60\n\n   CPU     0      1\n"
      "     0   2.00   5.00\n     1   6.00   2.10\n```\nprose 1 2\n",
      "p.txt");
  EXPECT_EQ(log.devices.size(), 2U);
  EXPECT_EQ(log.devices[0], "Some GPU");
  EXPECT_TRUE(log.knows_peer_access);
  EXPECT_FALSE(log.has_peer_access);
  EXPECT_EQ(log.figures.size(), 16U);
  EXPECT_EQ(figure(log, LinkFigureKind::kOneWay, "gpu1", "gpu0", "P2P=Enabled").value, 6.5e9);
  EXPECT_EQ(figure(log, LinkFigureKind::kBothWays, "gpu0", "gpu1", "P2P=Disabled").value, 9e9);
  EXPECT_NEAR(figure(log, LinkFigureKind::kLatency, "gpu0", "gpu1", "P2P=Enabled").value, 12e-6,
              1e-12);
  EXPECT_NEAR(figure(log, LinkFigureKind::kLatency, "gpu0", "gpu1", "CPU P2P=Enabled").value, 5e-6,
              1e-12);
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kFound, "no pair has peer access"));
}

TEST(Nvbandwidth, SumsAreCheckedAndWaivedTestsSaid) {
  const std::string head =
      "nvbandwidth Version: v0.9\nDevice 0: Some GPU (0000:01:00)\n\nRunning "
      "host_to_device_memcpy_ce.\n"
      "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n"
      " 0    10.25    20.50\n\n";
  const LinkLog log =
      parse_nvbandwidth(head + "SUM host_to_device_memcpy_ce 30.75\n\nWaived:\nWaived:\n", "v.txt");
  EXPECT_EQ(log.figures.size(), 2U);
  EXPECT_EQ(log.figures[1].value, 20.5e9);
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kUnknown, "between GPUs"));
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kUnknown, "2 waived"));
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kIgnored, "more columns"));
  EXPECT_THAT(
      error_of([&] { parse_nvbandwidth(head + "SUM host_to_device_memcpy_ce 99.0\n", "v.txt"); }),
      HasSubstr("v.txt:9: the cells of host_to_device_memcpy_ce add to 30.75"));
}

TEST(Perftest, UnitsAndAPeakThatWasNotMeasured) {
  const LinkLog gigabits = parse_perftest(
      "                    RDMA_Write BW Test\n Number of qps   : 2            Transport type : "
      "IB\n"
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 4096      1000          0.00               80.00             2.4\n",
      "w.txt");
  ASSERT_EQ(gigabits.figures.size(), 1U);
  EXPECT_EQ(gigabits.figures[0].value, 10e9);
  EXPECT_TRUE(has_finding(gigabits.findings, FindingKind::kUnknown, "peak"));
  const LinkLog mebi = parse_perftest(
      "                    RDMA_Read BW Test\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      " 65536      1000          2000.00            1000.00             0.01\n",
      "w.txt");
  ASSERT_EQ(mebi.figures.size(), 2U);
  EXPECT_EQ(mebi.figures[0].value, 1000.0 * 1048576);
  const LinkLog latency = parse_perftest(
      "                    RDMA_Write Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n"
      " 2       1000          1.00           9.00         1.25               1.50\n",
      "w.txt");
  ASSERT_EQ(latency.figures.size(), 1U);
  EXPECT_NEAR(latency.figures[0].value, 1.25e-6, 1e-12);
}

TEST(Superbench, NamesSayEndsDirectionAndMethod) {
  const LinkLog log = parse_superbench(
      "gpu0_to_gpu1_write_by_sm 100.5\ngpu0_and_gpu1_read_by_dma 180.25\n"
      "cpu_to_gpu0_by_dma_under_numa1 20\nsome other line\n",
      "s.txt");
  EXPECT_EQ(figure(log, LinkFigureKind::kOneWay, "gpu0", "gpu1", "write by sm").value, 100.5e9);
  EXPECT_EQ(figure(log, LinkFigureKind::kBothWays, "gpu0", "gpu1", "read by dma").value, 180.25e9);
  EXPECT_EQ(log.devices.size(), 2U);
  EXPECT_THAT(error_of([] { parse_superbench("a b\n", "s.txt"); }), HasSubstr("no figure"));
}

TEST(Superbench, AFigureAtAnEndWithoutNewlineMayBeCut) {
  const std::string line = "gpu0_to_gpu1_write_by_sm 100.5";
  const auto is_doubted = [](const std::string& text) {
    return has_finding(parse_superbench(text, "s.txt").findings, FindingKind::kUnknown,
                       "whether the last figure is whole");
  };
  EXPECT_TRUE(is_doubted(line));
  EXPECT_FALSE(is_doubted(line + "\n"));
}

TEST(Numbers, CommasPartThousandsAndNothingElse) {
  EXPECT_EQ(number_of("1,234.5"), 1234.5);
  EXPECT_EQ(number_of("12,345,678"), 12345678);
  EXPECT_EQ(number_of("1000,"), 1000) << "the comma ends the word";
  EXPECT_EQ(whole_of("-1,000"), -1000);
  for (const char* odd : {"5,9", "157,80", "1234,567", "1,23,456", ",5", "1,2345", "1,,234"}) {
    EXPECT_FALSE(number_of(odd).has_value()) << odd;
    EXPECT_FALSE(whole_of(odd).has_value()) << odd;
  }
}

TEST(P2p, DecimalCommasAndMatricesWithoutRowsAreRefused) {
  const std::string title = "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D 0 1\n";
  EXPECT_THAT(error_of([&] { parse_p2p_bandwidth(title + " 0 9,5 5,8\n", "p.txt"); }),
              HasSubstr("\"9,5\" is no figure"));
  EXPECT_THAT(error_of([&] { parse_p2p_bandwidth(title, "p.txt"); }), HasSubstr("no rows"));
}

TEST(PairBandwidth, RepeatsAreTakenOutAndContradictionsRefused) {
  const LinkLog log = parse_pair_bandwidth(
      "[[0, 1], [1, 0]]\n"
      "SIZE 1000000, REAL_BD 2.0 GB/s, BD/PAIR 1.0 GB/s, time 5.000e-02 s, comm_vol 50 MB\n"
      "SIZE 2000000, REAL_BD 4.0 GB/s, BD/PAIR 2.0 GB/s, time 5.000e-02 s, comm_vol 100 MB\n",
      "b.log");
  ASSERT_EQ(log.figures.size(), 6U);
  EXPECT_EQ(log.figures[3].value, 2e9);
  EXPECT_NEAR(log.figures[5].value, 1e-3, 1e-9);
  EXPECT_THAT(error_of([] {
                parse_pair_bandwidth(
                    "SIZE 1000, REAL_BD 2.0 GB/s, BD/PAIR 2.0 GB/s, time 5.0e-02 s, x\n", "b.log");
              }),
              HasSubstr("b.log:1: size, bandwidths and time contradict"));
}

const char kCsvHeader[] =
    "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n";

TEST(NsysKernels, CsvWithQuotesAndTablesWithCommas) {
  const KernelSummary csv =
      parse_nsys_kernels(std::string(kCsvHeader) +
                             "60.0,600,3,200.0,200.0,190,210,10.0,\"void f<a, \"\"b\"\">\"\n"
                             "40.0,400,1,400.0,400.0,400,400,0.0,g\n",
                         "k.csv");
  ASSERT_EQ(csv.rows.size(), 2U);
  EXPECT_EQ(csv.rows[0].name, "void f<a, \"b\">");
  EXPECT_EQ(csv.total_ns(), 1000);
  EXPECT_TRUE(csv.is_whole);
  const KernelSummary table = parse_nsys_kernels(
      " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
      " Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)  "
      "Name\n"
      " --------  ---------------  ---------  --------  --------  --------  --------  -----------  "
      "----\n"
      "     70.0        1,000,000      1,000   1,000.0   1,000.0       900     1,100         10.0  "
      "void long_na…\n"
      "     20.0          300,0",
      "k.txt");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].total_ns, 1'000'000);
  EXPECT_TRUE(table.rows[0].is_name_cut);
  EXPECT_FALSE(table.is_whole);
  EXPECT_TRUE(has_finding(table.findings, FindingKind::kIgnored, "cut"));
  EXPECT_THAT(error_of([] {
                parse_nsys_kernels(std::string(kCsvHeader) + "1.0,999,3,200.0,1,1,1,1,f\n",
                                   "k.csv");
              }),
              HasSubstr("k.csv:2: 3 calls of 200 ns"));
}

TEST(AttentionBench, CountsThatCannotBeAreRefused) {
  for (const char* counts : {"SP=(4096,3333333333333333),S=(1024),Nh=(2,1),bs=1,D=64",
                             "SP=(0,4),S=(1024),Nh=(2,1),bs=1,D=64",
                             "SP=(1,4),S=(9000000000000000),Nh=(2,1),bs=1,D=64"}) {
    try {
      parse_attention_bench("da_config: " + std::string(counts) + ",causal=True\n", "b.log");
      ADD_FAILURE() << counts;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("b.log:1: a da_config with counts that cannot"));
    }
  }
}

TEST(AttentionBench, ConfigsMethodsAndPasses) {
  const AttentionBenchLog log = parse_attention_bench(
      "causal=True, fob=0:\n"
      "da_config: SP=(1,4),Sg=(256,256),S=(1024,1024),Nh=(2,1),bs=1,D=64,causal=True,hierarchy=1:\n"
      "# some_ring_func, fwd\n"
      "mfu: 0.034 Tflops/s, hfu: 0.034 Tflops/s, 500.0 iter/s, 2.000e-03 s/iter, (1, 2, 3) sec\n"
      "mfu: 9.000 Tflops/s, hfu: 0.017 Tflops/s, 250.0 iter/s, 4.000e-03 s/iter, (1, 2, 3) sec\n"
      "causal=True, fob=1:\n"
      "da_config: SP=(1,4),Sg=(256,256),S=(1024,1024),Nh=(2,1),bs=1,D=64,causal=True,hierarchy=1:\n"
      "# some_ring_func, bwd\n"
      "mfu: 0.027 Tflops/s, hfu: 0.034 Tflops/s, 200.0 iter/s, 5.000e-03 s/iter, (1, 2, 3) sec\n",
      "b.log");
  ASSERT_EQ(log.rows.size(), 3U);
  EXPECT_EQ(log.rows[0].ranks_per_node, 4);
  EXPECT_EQ(log.rows[0].kv_heads, 1);
  EXPECT_EQ(log.rows[0].seconds, 2e-3);
  EXPECT_FALSE(log.rows[0].is_backward);
  EXPECT_EQ(log.rows[1].variant, 1);
  EXPECT_TRUE(log.rows[2].is_backward);
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kIgnored, "stated rates of 1 rows"));
  EXPECT_TRUE(has_finding(log.findings, FindingKind::kUnknown, "unnamed rows"));
}

TEST(TrainingBench, SeveralTablesAndThousandsCommas) {
  const TrainingBench bench = parse_training_bench(
      "Some model. 16 GPUs.\n\n| Parallelism | Sequence Length | TPS/GPU | Memory(GiB) |\n"
      "| --- | ---: | ---: | ---: |\n| FSDP 8, CP 2 | 8192 | 1,234 | 50.5 |\n\n"
      "| a | b |\n|---|---|\n| 1 | 2 |\n",
      "t.md");
  ASSERT_EQ(bench.rows.size(), 1U);
  EXPECT_EQ(bench.rows[0].gpus, 16);
  EXPECT_EQ(bench.rows[0].context_parallel, 2);
  EXPECT_EQ(bench.rows[0].tokens_per_s_per_gpu, 1234);
  EXPECT_EQ(bench.rows[0].memory_gib, 50.5);
  EXPECT_TRUE(has_finding(bench.findings, FindingKind::kIgnored, "other columns"));
}

}  // namespace
}  // namespace ring
