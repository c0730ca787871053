// RowCase: what a published row measured, in terms of machines, problems and strategies of ours.
#pragma once

#include <string>
#include <vector>

#include "core/problem.h"
#include "experiments/validation/published_rows.h"

namespace ring {

/// How the ranks of a row cooperate.
enum class Layout {
  kKernel,      ///< One GPU, one call.
  kRing,        ///< `ring` ranks, of which each stands for `ulysses` GPUs that share heads.
  kDoubleRing,  ///< Inner rings of `inner` ranks.
  kAllGather,   ///< All keys first, then one call.
  kDecode,      ///< A piece of ring pass-Q decoding or of prefill with cached keys.
  kOverlap,     ///< Arithmetic: the block length from which a hop hides.
};

/// Which work a row's time covers.
enum class TimedPass { kForward, kBackward, kBoth };

/// What the value counts.
enum class Quantity { kSeconds, kPerSecond, kFlopsPerGpu, kTokens };

struct RowCase {
  std::string skip;  ///< Why the row is not predicted; empty when it is.

  std::string machine;  ///< Of the library.
  std::string kernels;  ///< Family; empty: the machine's own.
  std::string stack = "own";
  Layout layout = Layout::kRing;
  int gpus = 1;
  int ring = 1, ulysses = 1, inner = 1;
  bool is_ulysses_across_nodes = false;
  int all_to_all_calls = 1;  ///< For Q, K, V together, or one each.
  std::string partition = "contiguous";
  Problem problem;
  TimedPass pass = TimedPass::kForward;
  double nic_bytes_per_s = 0;  ///< As the row states it; 0: the machine's.

  // Of kDecode.
  enum class Piece { kAttend, kRingLoop, kSendReceive, kAllToAll, kWhole };
  Piece piece = Piece::kWhole;
  bool is_pass_q = true;
  int64_t query_rows = 1;      ///< Per GPU and step.
  int64_t context_tokens = 0;  ///< Keys of one rank and sequence.
  // Of kOverlap.
  double flops = 0, bytes_per_s = 0, blocks = 1;

  Quantity quantity = Quantity::kSeconds;
  double unit_scale = 1;     ///< The row's value times this is in SI units.
  double counted_flops = 0;  ///< Of all GPUs, as the row's source counts them.
  std::vector<std::string> assumptions;
};

/// Never throws for what a row says: rows that do not fit say so in `skip`.
RowCase interpret(const PublishedRow& row);

}  // namespace ring
