#include "core/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/counted.h"

namespace ring {

std::string describe(const Problem& problem) {
  std::string text = counted(problem.heads, "head");
  if (problem.kv_heads != problem.heads)
    text += fmt::format(" over {}", counted(problem.kv_heads, "KV head"));
  text += fmt::format(" of {}", problem.head_dim);
  if (problem.head_dim_v != problem.head_dim) text += fmt::format(" (V {})", problem.head_dim_v);
  text += fmt::format(", {} tokens, {}, {}, {}", format_count(problem.seq_len()),
                      problem.mask.text(), name(problem.dtype), name(problem.pass));
  if (problem.batch != 1) text += fmt::format(", batch {}", problem.batch);
  return text;
}

std::string describe(const Tuning& tuning) {
  std::string text =
      fmt::format("{} on {}, {}, blocks of {}, ", tuning.strategy, counted(tuning.ranks, "rank"),
                  tuning.partition, format_count(tuning.block_tokens));
  text += tuning.blocks_per_message == 0 ? "one message a shard"
          : tuning.blocks_per_message == 1
              ? "one block a message"
              : fmt::format("{} blocks a message", tuning.blocks_per_message);
  text += fmt::format(", depth {}", tuning.pipeline_depth);
  if (tuning.lanes != 1) text += fmt::format(", {} lanes", tuning.lanes);
  if (tuning.is_deterministic) text += ", deterministic";
  if (tuning.backward == BackwardMoves::kKeys) text += ", K and V travel backward";
  if (tuning.backward == BackwardMoves::kQueries) text += ", the query side travels backward";
  if (tuning.accumulation_steps > 1)
    text += fmt::format(", {} passes a step", tuning.accumulation_steps);
  if (tuning.optimizer_gap_ps > 0)
    text += fmt::format(", optimizer gap {}", format_time(tuning.optimizer_gap_ps));
  return text;
}

std::string describe(const PredictedInterval& interval) {
  std::string text = fmt::format("{:.0f} % of runs between {} and {}", interval.coverage * 100,
                                 format_time(interval.low_ps), format_time(interval.high_ps));
  if (interval.is_extrapolated) text += ", extrapolated";
  return text;
}

std::string bottleneck_sentence(const Blame& blame) {
  struct Share {
    const char* what;
    Picoseconds time_ps;
  };
  const auto of = [&blame](BlameKind kind) { return blame.of(kind); };
  std::array<Share, 6> shares = {{
      {"computation", of(BlameKind::kAttend) + of(BlameKind::kCompute) + of(BlameKind::kMerge) +
                          of(BlameKind::kFinalize) + of(BlameKind::kCopy) +
                          of(BlameKind::kBackward) + of(BlameKind::kGradients)},
      {"transfers that nothing covers",
       of(BlameKind::kHop) + of(BlameKind::kFill) + of(BlameKind::kDrain)},
      {"sharing of cores, links or memory", of(BlameKind::kContention)},
      {"imbalance between ranks", of(BlameKind::kImbalance)},
      {"waiting for a free receive buffer", of(BlameKind::kCreditWait)},
      {"launch, wake-up and late start", of(BlameKind::kLaunch) + of(BlameKind::kLateStart)},
  }};
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.time_ps > b.time_ps; });
  if (blame.makespan_ps <= 0) return "nothing was done";
  const auto share_text = [&blame](const Share& share) {
    const double part = static_cast<double>(share.time_ps) / static_cast<double>(blame.makespan_ps);
    return fmt::format("{} ({})", share.what, format_percent(part));
  };
  std::string text = share_text(shares[0]);
  const bool has_second = shares[1].time_ps * 50 >= blame.makespan_ps;
  if (has_second) text += ", then " + share_text(shares[1]);
  return text;
}

std::string duration_text(Picoseconds time_ps) { return time_ps == 0 ? "0" : format_time(time_ps); }

std::string signed_percent(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  return fmt::format("{:+.1f} %", fraction * 100);
}

}  // namespace ring
