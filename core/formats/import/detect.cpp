#include "core/formats/import/detect.h"

#include "core/error.h"
#include "core/formats/import/nccl_tests_log.h"
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

/// A Chakra trace begins with the length of its metadata, and that with its version as text.
bool is_chakra(std::string_view text) {
  constexpr char kVersionField = 0x0a;
  if (text.size() < 4 || text[1] != kVersionField) return false;
  const auto length = static_cast<unsigned char>(text[0]);
  const auto version = static_cast<unsigned char>(text[2]);
  if (length < version + 2 || length > 0x7f || text.size() < size_t{3} + version) return false;
  const std::string_view words = text.substr(3, version);
  return !words.empty() && words.find_first_not_of("0123456789.") == std::string_view::npos;
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
    case FileKind::kChakra:
      return "chakra";
    case FileKind::kRunFile:
      return "run";
    case FileKind::kMachineFile:
      return "machine";
  }
  return "?";
}

std::optional<FileKind> file_kind_of(std::string_view word) {
  for (int k = 0; k < kFileKinds; ++k) {
    const auto kind = static_cast<FileKind>(k);
    if (kind != FileKind::kUnknown && name(kind) == word) return kind;
  }
  return std::nullopt;
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
    case FileKind::kChakra:
      return "a Chakra execution trace";
    case FileKind::kRunFile:
      return "a run file of ringscope";
    case FileKind::kMachineFile:
      return "a machine file of ringscope";
  }
  return "?";
}

FileKind detect(std::string_view text) {
  text = text.substr(0, kLookedAt);
  if (is_chakra(text)) return FileKind::kChakra;
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

}  // namespace ring
