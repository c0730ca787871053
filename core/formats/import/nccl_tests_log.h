// Logs of nccl-tests and rccl-tests: the times of collectives over message sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"

namespace ring {

/// One half of a row: out of place or in place.
struct CollectiveTime {
  double time_us = 0;
  double algbw = 0, busbw = 0;   ///< GB/s, 10^9.
  std::optional<int64_t> wrong;  ///< Wrong elements; not set when results were not checked.
};

struct CollectiveRow {
  int64_t line = 0;
  int64_t size_bytes = 0, count = 0;
  std::string type, redop;
  CollectiveTime out_of_place;
  std::optional<CollectiveTime> in_place;
};

struct CollectiveRank {
  int rank = 0, device = 0;
  std::string host, gpu;
};

/// One run of one test program.
struct CollectiveRun {
  int64_t line = 0;
  std::string collective;    ///< "all_reduce", ...; empty when it cannot be told.
  bool is_inferred = false;  ///< From the numbers, not from a name in the file.
  std::vector<CollectiveRank> ranks;
  std::vector<CollectiveRow> rows;
  std::optional<double> stated_average;  ///< GB/s, of the footer.

  int hosts() const;
  bool is_checked() const;  ///< Some row has counted its wrong elements.
  int64_t wrong() const;    ///< Wrong elements in all rows.
  /// The first row with the greatest bus bandwidth, out of place or in place.
  const CollectiveRow* peak(bool in_place) const;
};

struct NcclTestsLog {
  std::vector<CollectiveRun> runs;
  Findings findings;
};

/// Throws Error(kUsage) with file:line when there is no table, or a row has too few numbers.
NcclTestsLog parse_nccl_tests(std::string_view text, const std::string& file);

}  // namespace ring
