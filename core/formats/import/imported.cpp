#include "core/formats/import/imported.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/formats/chakra.h"
#include "core/formats/file_io.h"

namespace ring {
namespace {

constexpr size_t kHeadBytes = size_t{1} << 20;
/// Files that a program wrote about one host, one model or one test; nothing real is near it.
constexpr int64_t kMostDocumentBytes = int64_t{16} << 20;

template <typename Result>
Imported imported(FileKind kind, Result result) {
  Findings findings = std::move(result.findings);
  return {kind, std::move(result), std::move(findings)};
}

void add(Findings& findings, std::string text) {
  findings.push_back({FindingKind::kFound, std::move(text), 0});
}

Imported read_machine_file(std::string_view text, const std::string& path) {
  MachineFile file = parse_machine(text, path);
  Findings findings;
  add(findings, fmt::format("machine {} of {} processors, {} samples", file.machine.name,
                            file.machine.processors.size(), file.calibration.samples.size()));
  return {FileKind::kMachineFile, std::move(file), std::move(findings)};
}

Imported read_run_file(std::string_view text, const std::string& path) {
  RunFile run = parse_run(text, path);
  Findings findings;
  for (const auto* timeline : {&run.measured, &run.predicted}) {
    if (!*timeline) continue;
    add(findings, fmt::format("{} timeline of {} slices on {} ranks, {}{}",
                              timeline == &run.measured ? "measured" : "predicted",
                              (*timeline)->slices.size(), (*timeline)->ranks,
                              format_time((*timeline)->makespan_ps()),
                              (*timeline)->is_complete ? "" : ", incomplete"));
  }
  return {FileKind::kRunFile, std::move(run), std::move(findings)};
}

/// "PREFIX.3.et" is rank 3 of PREFIX.
std::string chakra_prefix(const std::string& path) {
  const std::string_view end = ".et";
  if (!path.ends_with(end)) return {};
  const std::string stem = path.substr(0, path.size() - end.size());
  const size_t dot = stem.rfind('.');
  const bool has_rank = dot != std::string::npos && dot + 1 < stem.size() &&
                        std::all_of(stem.begin() + static_cast<std::ptrdiff_t>(dot) + 1, stem.end(),
                                    [](char c) { return c >= '0' && c <= '9'; });
  return has_rank ? stem.substr(0, dot) : std::string();
}

Imported read_chakra_file(const std::string& path) {
  const std::string prefix = chakra_prefix(path);
  Findings findings;
  RingProgram program;
  if (prefix.empty()) {
    program = parse_chakra({read_file(path)}, {path});
    findings.push_back({FindingKind::kAssumed,
                        "rank 0 of 1: the name is not PREFIX.RANK.et, so no other ranks are looked "
                        "for",
                        0});
  } else {
    program = read_chakra(prefix);
  }
  add(findings, fmt::format("{} ranks, {} ops on {} lanes", program.ranks(), program.op_count(),
                            program.lanes));
  return {FileKind::kChakra, std::move(program), std::move(findings)};
}

[[noreturn]] void throw_unknown(const std::string& path) {
  throw_usage(path + ": of no kind that can be read",
              "Known are topologies, NCCL files and logs, link tests, traces, model configs and "
              "benchmark logs (docs/import.md).");
}

bool is_utf16(std::string_view text) {
  return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
}

Imported read_kind(FileKind kind, std::string_view text, const std::string& path) {
  switch (kind) {
    case FileKind::kTopoMatrix:
      return imported(kind, parse_topo_matrix(text, path));
    case FileKind::kNcclTopology:
      return imported(kind, parse_nccl_topology(text, path));
    case FileKind::kNcclGraphs:
      return imported(kind, parse_nccl_graphs(text, path));
    case FileKind::kNcclTests:
      return imported(kind, parse_nccl_tests(text, path));
    case FileKind::kNcclInfo:
      return imported(kind, parse_nccl_info(text, path));
    case FileKind::kP2pBandwidth:
      return imported(kind, parse_p2p_bandwidth(text, path));
    case FileKind::kNvbandwidth:
      return imported(kind, parse_nvbandwidth(text, path));
    case FileKind::kPerftest:
      return imported(kind, parse_perftest(text, path));
    case FileKind::kSuperbench:
      return imported(kind, parse_superbench(text, path));
    case FileKind::kPairBandwidth:
      return imported(kind, parse_pair_bandwidth(text, path));
    case FileKind::kHfConfig:
      return imported(kind, parse_hf_config(text, path));
    case FileKind::kKernelTrace:
      return imported(kind, read_kernel_trace(path));
    case FileKind::kNsysKernels:
      return imported(kind, parse_nsys_kernels(text, path));
    case FileKind::kAttentionBench:
      return imported(kind, parse_attention_bench(text, path));
    case FileKind::kTrainingBench:
      return imported(kind, parse_training_bench(text, path));
    case FileKind::kChakra:
      return read_chakra_file(path);
    case FileKind::kRunFile:
      return read_run_file(text, path);
    case FileKind::kMachineFile:
      return read_machine_file(text, path);
    case FileKind::kUnknown:
      break;
  }
  throw_unknown(path);
}

/// Traces are read as a stream and Chakra files by their own reader; logs of jobs may be long, and
/// documents are small.
std::string text_for(FileKind kind, const std::string& path) {
  switch (kind) {
    case FileKind::kUnknown:
    case FileKind::kKernelTrace:
    case FileKind::kChakra:
      return {};
    case FileKind::kNcclTests:
    case FileKind::kNcclInfo:
    case FileKind::kRunFile:
    case FileKind::kMachineFile:
      return read_file(path);
    case FileKind::kTopoMatrix:
    case FileKind::kNcclTopology:
    case FileKind::kNcclGraphs:
    case FileKind::kP2pBandwidth:
    case FileKind::kNvbandwidth:
    case FileKind::kPerftest:
    case FileKind::kSuperbench:
    case FileKind::kPairBandwidth:
    case FileKind::kHfConfig:
    case FileKind::kNsysKernels:
    case FileKind::kAttentionBench:
    case FileKind::kTrainingBench:
      return read_file(path, kMostDocumentBytes);
  }
  return {};
}

}  // namespace

std::string head_of_file(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status)) {
    throw_usage(path +
                    ": not an ordinary file: it is read twice, to see what it is and for what "
                    "is in it",
                "Write it into a file first.");
  }
  const auto input = open_input(path);
  std::string head(kHeadBytes, '\0');
  input->read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(input->gcount()));
  return head;
}

Imported read_imported(const std::string& path, FileKind kind) {
  if (kind == FileKind::kUnknown) {
    const std::string head = head_of_file(path);
    if (is_utf16(head)) {
      throw_usage(path + ": text in UTF-16, as PowerShell writes it",
                  fmt::format("Convert it: iconv -f UTF-16 -t UTF-8 {} > NEW", path));
    }
    kind = detect(head);
  }
  return read_kind(kind, text_for(kind, path), path);
}

ImportReport import_file(const std::string& path, FileKind kind) {
  Imported file = read_imported(path, kind);
  return {file.kind, std::move(file.findings)};
}

}  // namespace ring
