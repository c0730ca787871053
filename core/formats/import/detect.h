// What a file is, told by its content, and what is in it, line by line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/formats/findings.h"

namespace ring {

enum class FileKind {
  kUnknown,
  kTopoMatrix,
  kNcclTopology,
  kNcclGraphs,
  kNcclTests,
  kNcclInfo,
  kP2pBandwidth,
  kNvbandwidth,
  kPerftest,
  kSuperbench,
  kPairBandwidth,
  kHfConfig,
  kKernelTrace,
  kNsysKernels,
  kAttentionBench,
  kTrainingBench,
  kChakra,
  kRunFile,
  kMachineFile,
};
inline constexpr int kFileKinds = static_cast<int>(FileKind::kMachineFile) + 1;
/// "topo", "nccl-tests", ...: the word that `ringscope import` takes.
std::string_view name(FileKind kind);
/// The kind of that name, if there is one.
std::optional<FileKind> file_kind_of(std::string_view word);
/// One sentence about the kind.
std::string_view describe(FileKind kind);

/// Tells by marks in the first megabyte; kUnknown when no mark is known.
FileKind detect(std::string_view text);

struct ImportReport {
  FileKind kind = FileKind::kUnknown;
  Findings findings;
};

/// What `read_imported` finds: reads the file with the reader of its kind, or of `kind` unless that
/// is kUnknown. Throws Error(kUsage) as that reader does, and for a file of no known kind.
ImportReport import_file(const std::string& path, FileKind kind = FileKind::kUnknown);

}  // namespace ring
