// RunAccount: what every rank did with its time: busy, or idle for a reason; the sums are exact.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/alone_times.h"
#include "core/run_graph.h"

namespace ring {

/// Why a rank computed nothing.
enum class BubbleKind : uint8_t {
  kFill,       ///< Before its first computation, waiting for data.
  kDrain,      ///< After the last computation of the run.
  kImbalance,  ///< Another rank computed longer.
  kCreditWait,
  kContention,
  kLaunch,
  kLateStart,
  kCommunication,  ///< A transfer was under way, at the speed it has alone.
};
inline constexpr int kBubbleKinds = 8;
std::string_view name(BubbleKind kind);

struct Bubble {
  int32_t rank = 0;
  BubbleKind kind = BubbleKind::kFill;
  Picoseconds begin_ps = 0, end_ps = 0;
  OpId op;  ///< What was under way, or was about to run.
};

struct RankAccount {
  Picoseconds busy_ps = 0;  ///< Union of attend, compute, merge, finalize and copy.
  std::array<Picoseconds, kBubbleKinds> bubble_ps{};
  Picoseconds of(BubbleKind kind) const { return bubble_ps[static_cast<size_t>(kind)]; }
};

/// Time that ranks stood still because of the transfers from one rank to another.
struct HopExposure {
  int32_t from = 0, to = 0;
  Picoseconds communication_ps = 0;  ///< Includes fill and drain.
  Picoseconds contention_ps = 0;
};

struct RunAccount {
  Picoseconds makespan_ps = 0;
  std::vector<RankAccount> ranks;  ///< busy + bubbles = makespan, exactly, on every rank.
  std::vector<Bubble> bubbles;     ///< By rank, then by time.
  std::vector<HopExposure> hops;   ///< By (from, to).
};

RunAccount account_run(const RunGraph& graph, const AloneTimes& alone);

}  // namespace ring
