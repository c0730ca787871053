#include "core/formats/import/detect.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/hf_config.h"
#include "core/formats/import/bench_log.h"
#include "core/formats/import/kernel_trace.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/nccl_info_log.h"
#include "core/formats/import/nccl_tests_log.h"
#include "core/formats/import/nccl_xml.h"
#include "core/formats/import/nsys_kernels.h"
#include "core/formats/import/text_lines.h"
#include "core/formats/import/topo_matrix.h"
#include "core/formats/machine_json.h"
#include "core/formats/run_json.h"

namespace ring {
namespace {

constexpr size_t kLookedAt = size_t{1} << 20;

FileKind detect_json(std::string_view text) {
  if (contains(text, kRunSchema)) return FileKind::kRunFile;
  if (contains(text, kMachineSchema)) return FileKind::kMachineFile;
  if (contains(text, "\"traceEvents\"")) return FileKind::kKernelTrace;
  if (text.starts_with("[") && contains(text, "\"ph\"")) return FileKind::kKernelTrace;
  return FileKind::kHfConfig;
}

FileKind detect_xml(std::string_view text) {
  if (contains(text, "<graphs")) return FileKind::kNcclGraphs;
  if (contains(text, "<system")) return FileKind::kNcclTopology;
  return FileKind::kUnknown;
}

/// A header of a test table may stand in a log without any row.
bool has_collective_rows(std::string_view text) {
  try {
    return !parse_nccl_tests(text, "").runs.empty();
  } catch (const Error&) {
    return false;
  }
}

bool has_topo_table(std::string_view text) {
  try {
    return !parse_topo_matrix(text, "").devices.empty();
  } catch (const Error& error) {
    return !contains(error.what(), "no topology matrix");
  }
}

FileKind detect_text(std::string_view text) {
  if (contains(text, "da_config:")) return FileKind::kAttentionBench;
  if (contains(text, "REAL_BD")) return FileKind::kPairBandwidth;
  if (contains(text, "nvbandwidth Version")) return FileKind::kNvbandwidth;
  if (contains(text, "P2P Connectivity Matrix") || contains(text, "directional P2P=")) {
    return FileKind::kP2pBandwidth;
  }
  if (contains(text, "#bytes") && contains(text, "#iterations")) return FileKind::kPerftest;
  if (contains(text, "Total Time (ns)") && contains(text, "Instances")) {
    return FileKind::kNsysKernels;
  }
  if (contains(text, "busbw") && has_collective_rows(text)) return FileKind::kNcclTests;
  if (contains(text, "NCCL INFO ")) return FileKind::kNcclInfo;
  if (contains(text, "busbw")) return FileKind::kNcclTests;
  if (contains(text, "_by_dma") || contains(text, "_by_sm")) return FileKind::kSuperbench;
  if (contains(text, "TPS/GPU") && contains(text, "|")) return FileKind::kTrainingBench;
  if (contains(text, "GPU0") && has_topo_table(text)) return FileKind::kTopoMatrix;
  return FileKind::kUnknown;
}

template <typename Result>
ImportReport report(FileKind kind, Result result) {
  return {kind, std::move(result.findings)};
}

void add(ImportReport& out, std::string text) {
  out.findings.push_back({FindingKind::kFound, std::move(text), 0});
}

ImportReport read_own(FileKind kind, std::string_view text, const std::string& path) {
  ImportReport out{kind, {}};
  if (kind == FileKind::kMachineFile) {
    const MachineFile file = parse_machine(text, path);
    add(out, fmt::format("machine {} of {} processors, {} samples", file.machine.name,
                         file.machine.processors.size(), file.calibration.samples.size()));
    return out;
  }
  const RunFile run = parse_run(text, path);
  for (const auto* timeline : {&run.measured, &run.predicted}) {
    if (!*timeline) continue;
    add(out, fmt::format("{} timeline of {} slices on {} ranks, {}{}",
                         timeline == &run.measured ? "measured" : "predicted",
                         (*timeline)->slices.size(), (*timeline)->ranks,
                         format_time((*timeline)->makespan_ps()),
                         (*timeline)->is_complete ? "" : ", incomplete"));
  }
  return out;
}

ImportReport read_kind(FileKind kind, std::string_view text, const std::string& path) {
  switch (kind) {
    case FileKind::kTopoMatrix:
      return report(kind, parse_topo_matrix(text, path));
    case FileKind::kNcclTopology:
      return report(kind, parse_nccl_topology(text, path));
    case FileKind::kNcclGraphs:
      return report(kind, parse_nccl_graphs(text, path));
    case FileKind::kNcclTests:
      return report(kind, parse_nccl_tests(text, path));
    case FileKind::kNcclInfo:
      return report(kind, parse_nccl_info(text, path));
    case FileKind::kP2pBandwidth:
      return report(kind, parse_p2p_bandwidth(text, path));
    case FileKind::kNvbandwidth:
      return report(kind, parse_nvbandwidth(text, path));
    case FileKind::kPerftest:
      return report(kind, parse_perftest(text, path));
    case FileKind::kSuperbench:
      return report(kind, parse_superbench(text, path));
    case FileKind::kPairBandwidth:
      return report(kind, parse_pair_bandwidth(text, path));
    case FileKind::kHfConfig:
      return report(kind, parse_hf_config(text, path));
    case FileKind::kKernelTrace:
      return report(kind, read_kernel_trace(path));
    case FileKind::kNsysKernels:
      return report(kind, parse_nsys_kernels(text, path));
    case FileKind::kAttentionBench:
      return report(kind, parse_attention_bench(text, path));
    case FileKind::kTrainingBench:
      return report(kind, parse_training_bench(text, path));
    case FileKind::kRunFile:
    case FileKind::kMachineFile:
      return read_own(kind, text, path);
    case FileKind::kUnknown:
      break;
  }
  throw_usage(path + ": of no kind that can be read",
              "Known are topologies, NCCL files and logs, link tests, traces, model configs and "
              "benchmark logs (docs/formats.md).");
}

/// The first megabyte, unpacked.
std::string head_of(const std::string& path) {
  const auto input = open_input(path);
  std::string head(kLookedAt, '\0');
  input->read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(input->gcount()));
  return head;
}

}  // namespace

std::string_view name(FileKind kind) {
  switch (kind) {
    case FileKind::kUnknown:
      return "unknown";
    case FileKind::kTopoMatrix:
      return "topo";
    case FileKind::kNcclTopology:
      return "nccl-topology";
    case FileKind::kNcclGraphs:
      return "nccl-graph";
    case FileKind::kNcclTests:
      return "nccl-tests";
    case FileKind::kNcclInfo:
      return "nccl-info";
    case FileKind::kP2pBandwidth:
      return "p2p";
    case FileKind::kNvbandwidth:
      return "nvbandwidth";
    case FileKind::kPerftest:
      return "perftest";
    case FileKind::kSuperbench:
      return "superbench";
    case FileKind::kPairBandwidth:
      return "pair-bandwidth";
    case FileKind::kHfConfig:
      return "hf-config";
    case FileKind::kKernelTrace:
      return "trace";
    case FileKind::kNsysKernels:
      return "nsys";
    case FileKind::kAttentionBench:
      return "attention-bench";
    case FileKind::kTrainingBench:
      return "training-bench";
    case FileKind::kRunFile:
      return "run";
    case FileKind::kMachineFile:
      return "machine";
  }
  return "?";
}

std::string_view describe(FileKind kind) {
  switch (kind) {
    case FileKind::kUnknown:
      return "a file of no known kind";
    case FileKind::kTopoMatrix:
      return "a topology matrix of nvidia-smi or rocm-smi";
    case FileKind::kNcclTopology:
      return "a topology file of NCCL or RCCL";
    case FileKind::kNcclGraphs:
      return "a graph file of NCCL or RCCL: the channels it searched";
    case FileKind::kNcclTests:
      return "a log of nccl-tests";
    case FileKind::kNcclInfo:
      return "a log of NCCL itself";
    case FileKind::kP2pBandwidth:
      return "the output of p2pBandwidthLatencyTest";
    case FileKind::kNvbandwidth:
      return "the output of nvbandwidth";
    case FileKind::kPerftest:
      return "the output of perftest (ib_write_bw and others)";
    case FileKind::kSuperbench:
      return "figures of superbench's gpu-copy-bw";
    case FileKind::kPairBandwidth:
      return "a log of exchanges between two GPUs";
    case FileKind::kHfConfig:
      return "a Hugging Face model config";
    case FileKind::kKernelTrace:
      return "a Kineto or Chrome trace";
    case FileKind::kNsysKernels:
      return "a kernel summary of Nsight Systems";
    case FileKind::kAttentionBench:
      return "a log of a distributed attention benchmark";
    case FileKind::kTrainingBench:
      return "tables of a training benchmark";
    case FileKind::kRunFile:
      return "a run file of ringscope";
    case FileKind::kMachineFile:
      return "a machine file of ringscope";
  }
  return "?";
}

FileKind detect(std::string_view text) {
  text = text.substr(0, kLookedAt);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return FileKind::kUnknown;
  const std::string_view content = text.substr(first);
  const size_t second = content.find_first_not_of(" \t\r\n", 1);
  const bool is_array = content[0] == '[' && second != std::string_view::npos &&
                        (content[second] == '{' || content[second] == ']');
  if (content[0] == '{' || is_array) return detect_json(content);
  if (content[0] == '<') {
    if (const FileKind kind = detect_xml(content); kind != FileKind::kUnknown) return kind;
  }
  return detect_text(text);
}

ImportReport import_file(const std::string& path, FileKind kind) {
  if (kind == FileKind::kUnknown) kind = detect(head_of(path));
  // Traces are read as a stream, the others are small.
  const std::string text = kind == FileKind::kKernelTrace ? std::string() : read_file(path);
  return read_kind(kind, text, path);
}

}  // namespace ring
