// Kernel summaries of Nsight Systems (cuda_gpu_kern_sum), as CSV or as a table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"

namespace ring {

struct KernelSummaryRow {
  int64_t line = 0;
  double percent = 0;  ///< As printed, cut to one decimal.
  int64_t total_ns = 0, count = 0;
  double mean_ns = 0, median_ns = 0, min_ns = 0, max_ns = 0, deviation_ns = 0;
  std::string name;
  bool is_name_cut = false;
};

struct KernelSummary {
  std::vector<KernelSummaryRow> rows;
  bool is_whole = true;  ///< False when a row was cut off.
  Findings findings;
  int64_t total_ns() const;
};

/// Throws Error(kUsage) with file:line when there is no such summary or a row contradicts itself.
KernelSummary parse_nsys_kernels(std::string_view text, const std::string& file);

}  // namespace ring
