// Closed forms: what rings take by arithmetic alone; instant bounds, and oracles for the simulator.
#pragma once

#include <cstdint>
#include <optional>

#include "core/machine.h"
#include "core/ring_program.h"

namespace ring {

/// A ring in which every rank computes `compute_ps` on each shard, and each hop takes
/// `transfer_ps`.
struct UniformRing {
  int ranks = 1;
  Picoseconds compute_ps = 0;
  Picoseconds transfer_ps = 0;
};

/// Pass-KV with two or more buffers and one message per shard, nothing masked: the own shard is
/// attended to while the first message is on its way; then a step takes max(compute, transfer).
///   compute + (ranks - 1) max(compute, transfer)
Picoseconds pass_kv_ps(const UniformRing& ring);

/// A ring that goes on only when computation and transfer of a step are both done, and does not
/// compute on what comes last: (ranks - 1) max(compute, transfer).
Picoseconds stepped_ring_ps(const UniformRing& ring);

/// A ring all-gather first, then all computation: (ranks - 1) transfer + ranks compute.
Picoseconds all_gather_kv_ps(const UniformRing& ring);

/// Visible pairs of a causal mask over equal shards of `shard_tokens`, per head.
struct CausalLoad {
  int64_t longest_pairs = 0;  ///< Of the rank with the most.
  int64_t total_pairs = 0;
  /// Ideal time over real time with free links: total / (ranks * longest).
  double efficiency = 1;
};
/// Contiguous shards: rank r sees r whole shards and half of its own; the last needs
/// (ranks - 1/2) units of a whole shard pair where ranks / 2 would be ideal, up to the diagonal.
CausalLoad contiguous_causal(int ranks, int64_t shard_tokens);
/// Zigzag shards of two chunks: every rank sees as many, the ideal.
CausalLoad zigzag_causal(int ranks, int64_t shard_tokens);

/// The bandwidth from which a message of `bytes` hides behind `compute_ps`; nothing when its
/// latency alone is longer.
std::optional<double> hiding_bandwidth(Bytes bytes, Picoseconds latency_ps, Picoseconds compute_ps);

/// The shard length from which a hop hides: computation grows with its square, a hop linearly.
///   pair_s n^2 >= latency_s + token_bytes n / bytes_per_s
Tokens hiding_tokens(double pair_s, double latency_s, Bytes token_bytes, double bytes_per_s);

/// No run of a program on a machine can be shorter than any of these.
struct LowerBounds {
  Picoseconds compute_ps = 0;  ///< Most work of one lane, or of the ranks on one processor.
  int compute_rank = -1;
  Picoseconds link_ps = 0;    ///< Bytes of the busiest link over its capacity, after one latency.
  int link = -1;              ///< A link of that resource.
  Picoseconds memory_ps = 0;  ///< Bytes copied on one host over its memory bandwidth.

  Bytes rank_bytes = 0;  ///< Queries, keys, buffers, states and output of the fullest rank.
  int fullest_rank = -1;
  bool fits = true;  ///< In the memory of a processor; true when that is unknown.

  Picoseconds longest_ps() const;
};
/// Without noise and disturbances. Throws Error(kUsage) where a cost or a path is missing.
LowerBounds lower_bounds(const RingProgram& program, const Machine& machine);

}  // namespace ring
