// Blame: what every picosecond of the critical path was spent on; the sums are exact.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/alone_times.h"
#include "core/critical_path.h"

namespace ring {

enum class BlameKind : uint8_t {
  kAttend,
  kCompute,
  kMerge,
  kFinalize,
  kCopy,
  kHop,         ///< A transfer that computation did not cover.
  kContention,  ///< What sharing a link, a core or the memory added.
  kImbalance,   ///< Computation of a rank beyond the mean of all ranks in the same ring step.
  kCreditWait,  ///< A message waited only for a receive buffer to become free.
  kFill,        ///< A transfer to a rank that had computed nothing yet.
  kDrain,       ///< A transfer after the last computation of the run.
  kLaunch,      ///< Launch and wake-up.
  kLateStart,   ///< The rank began late.
  kBackward,
  kGradients,  ///< Delta, and sums of gradients.
};
inline constexpr int kBlameKinds = 15;
std::string_view name(BlameKind kind);

struct BlameItem {
  BlameKind kind = BlameKind::kAttend;
  int32_t rank = -1;  ///< Where; the destination of a hop. -1: a link shared by several.
  int32_t peer = -1;  ///< Source of a hop.
  int32_t link = -1;  ///< Of contention: the link that was shared, into Topology::links.
  Picoseconds time_ps = 0;
};

struct Blame {
  Picoseconds makespan_ps = 0;
  std::vector<BlameItem> items;  ///< Longest first; they add up to makespan_ps exactly.
  std::array<Picoseconds, kBlameKinds> by_kind_ps{};  ///< So do these.

  Picoseconds of(BlameKind kind) const { return by_kind_ps[static_cast<size_t>(kind)]; }
};

/// Blames every picosecond of the critical path on one thing (docs/reasons.md says in which order).
Blame blame_path(const RunGraph& graph, const CriticalPath& path, const AloneTimes& alone);

/// Everything but send and receive: what keeps a rank busy.
bool is_work(OpKind kind);

/// length * part / whole without overflow; 0 when whole is 0.
Picoseconds scaled(Picoseconds length_ps, Picoseconds part_ps, Picoseconds whole_ps);

}  // namespace ring
