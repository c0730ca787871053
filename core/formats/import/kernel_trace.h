// Kernel traces: what ran on the GPUs of one process, from Kineto and other Chrome traces.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"
#include "core/timeline.h"

namespace ring {

/// One kernel, copy or fill on a stream. Times are nanoseconds from the first of the trace.
struct KernelSlice {
  int64_t begin_ns = 0, end_ns = 0;
  int32_t name = 0;  ///< Into KernelTrace::names.
  int32_t device = 0;
  int64_t stream = 0;
  int64_t elements = 0;       ///< Of a collective's message; 0: not stated.
  int64_t element_bytes = 0;  ///< 0: not stated.
  bool is_communication = false;
  bool is_copy = false;  ///< A memory copy or fill, not a kernel.
};

struct KernelTrace {
  int rank = -1;       ///< -1: not stated.
  int world_size = 0;  ///< 0: not stated.
  int listed_devices = 0;
  std::string device_name;
  int sms = 0;  ///< 0: not stated.
  std::vector<std::string> names;
  std::vector<KernelSlice> slices;             ///< In order of time.
  std::map<std::string, int64_t> collectives;  ///< Host calls "nccl:all_reduce" and how many.
  bool is_of_ring_program = false;             ///< RingScope wrote it of ops, not of kernels.
  Findings findings;
};

/// Unions of the intervals of kernels; copies do not count.
struct KernelTotals {
  int64_t kernels = 0, communication_kernels = 0;
  int64_t busy_ns = 0;  ///< Any kernel.
  int64_t communication_ns = 0;
  int64_t compute_ns = 0;
  int64_t overlap_ns = 0;  ///< Communication and computation at once.
};
KernelTotals totals_of(const KernelTrace& trace);

/// Reads a trace event by event: memory is needed for the GPU's slices only. Throws Error(kUsage)
/// with the byte offset for a file that ends early or is no trace, for nesting deeper than 64, and
/// for more than 20 million slices.
KernelTrace parse_kernel_trace(std::istream& input, const std::string& file);
KernelTrace read_kernel_trace(const std::string& path);

/// One rank whose lanes are the streams. Kernels of communication become receives, memory copies
/// copies, the others attends when their names say so and else computations.
Timeline timeline_of(const KernelTrace& trace);

}  // namespace ring
