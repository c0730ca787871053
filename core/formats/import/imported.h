// Imported: a file of any kind that can be read, with what its reader found in it.
#pragma once

#include <string>
#include <variant>

#include "core/formats/findings.h"
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
#include "core/ring_program.h"

namespace ring {

using ImportedContent =
    std::variant<TopoMatrix, NcclTopology, NcclGraphs, NcclTestsLog, NcclInfoLog, LinkLog, HfConfig,
                 KernelTrace, KernelSummary, AttentionBenchLog, TrainingBench, RingProgram, RunFile,
                 MachineFile>;

struct Imported {
  FileKind kind = FileKind::kUnknown;
  ImportedContent content;
  Findings findings;
};

/// Reads the file with the reader of its kind, or of `kind` unless that is kUnknown. A Chakra trace
/// is one rank of several: its neighbours PREFIX.0.et, PREFIX.1.et, ... are read with it. Throws
/// Error(kUsage) as that reader does, and for a file of no known kind.
Imported read_imported(const std::string& path, FileKind kind = FileKind::kUnknown);

/// The first megabyte of a file, unpacked: what `detect` needs.
std::string head_of_file(const std::string& path);

}  // namespace ring
