// LinkRates: how many bytes a second flow from rank to rank, over the time of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step_curve.h"
#include "core/timeline.h"

namespace ring {

struct LinkRate {
  int32_t from = 0;
  int32_t to = 0;         ///< -1: all destinations together.
  int32_t links = 1;      ///< How many destinations it stands for.
  Bytes bytes = 0;        ///< Carried in all.
  StepCurve bytes_per_s;  ///< A transfer flows evenly over [start, end).
};

/// By source, then destination. Sources with more than `most_per_rank` destinations have one curve
/// of all. Transfers are those of the receives; of a pair of which only sends were recorded, those.
std::vector<LinkRate> link_rates(const Timeline& timeline, int most_per_rank);

}  // namespace ring
