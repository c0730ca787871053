// Machine: what things cost on the hardware at hand, as measured or as stated by a datasheet.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/problem.h"
#include "core/tile_kernel.h"
#include "core/topology.h"
#include "core/units.h"

namespace ring {

/// Time of one attention op on one processor that is alone:
///   launch + per_pair * P H + per_pair_dim * P H (Dqk + Dv) + per_edge_row * E H (Dqk + Dv)
///   + per_row_dim * R H Dv + per_far_row_dim * far R H Dv + per_start_row_dim * R0 H Dv
///   + per_key_dim * N Hkv (Dqk + Dv)
/// with P visible pairs, R active rows, E edge rows, N keys, R0 rows whose state the op resets, all
/// times the batch (docs/model.md). `far` is the share of the rows whose Q and state have left the
/// cache since the op before: 1 - cache_bytes / (Q and state of the active rows of all ranks on the
/// processor), not below 0.
struct AttendCost {
  double launch_s = 0;
  double per_pair_s = 0;
  double per_pair_dim_s = 0;
  double per_edge_row_dim_s = 0;
  double per_row_dim_s = 0;
  double per_far_row_dim_s = 0;
  double per_start_row_dim_s = 0;
  double per_key_dim_s = 0;
  double cache_bytes = 0;  ///< 0: rows are never far.
  /// A GPU kernel by its tiles, one entry per head dim, ascending; with any, they say the time of
  /// an op instead of the terms above, of which only the two below count.
  std::vector<TileKernel> tiles = {};
  /// An op that continues a state, where the software merges the outputs of steps in passes of
  /// their own: added to its time, per launch and per active row and dim of V.
  double merge_launch_s = 0;
  double per_merge_row_dim_s = 0;
};

/// What one family of attention kernels costs on the GPU: FlashAttention-2, -3, cuDNN, ...
struct KernelFamily {
  std::vector<TileKernel> forward;  ///< By head dim, ascending.
  std::vector<TileKernel> backward;
};

/// Time that is linear in bytes: start + bytes / rate.
struct ByteCost {
  double start_s = 0;
  double bytes_per_s = 0;  ///< 0: unknown.
};

/// How a message between two ranks is carried.
enum class TransferKind {
  kLinks,         ///< Over the links of the route, which flows share max-min fairly.
  kReceiverCopy,  ///< Copied by a thread on the core of the receiving rank (in-process transport).
};

/// The range of a quantity that was sampled; outside it a prediction is marked as extrapolated.
struct TrustedRange {
  double low = 0, high = 0;
};

/// Relative run-to-run noise of ops and of whole runs, as standard deviations of the log.
struct Noise {
  double per_op = 0;
  double per_run = 0;
};

struct Machine {
  std::string name = "unnamed";
  bool is_calibrated = false;
  Topology topology;
  std::vector<int> processors;  ///< Nodes that ranks may be placed on, in ring order.
  TransferKind transfer = TransferKind::kLinks;

  std::map<DType, AttendCost> attend;
  std::map<DType, AttendCost> backward;
  /// Kernel families known for the GPU; `attend` and `backward` have the tiles of the default one.
  std::map<std::string, KernelFamily> kernels;
  ByteCost copy;                    ///< One processor copying, alone.
  double merge_bytes_per_s = 0;     ///< Of state read and written by merge.
  double finalize_bytes_per_s = 0;  ///< Of state read and output written; 0: as merge.
  double add_bytes_per_s = 0;       ///< Of gradients read and written by add; 0: as merge.
  double delta_bytes_per_s = 0;     ///< Of outputs read and gradients reset by delta; 0: as merge.
  double memory_bytes_per_s = 0;    ///< Shared by all copies of a host; 0: not a limit.
  double wakeup_s = 0;              ///< From a dependency being met to the waiting lane going on.
  /// Factor on attend while all processors of the host attend, while one attends it is 1.
  double attend_contention = 1;
  /// Factor on attend while a transfer to or from the rank is under way, and the reverse.
  double attend_slowdown_by_transfer = 1;
  double transfer_slowdown_by_attend = 1;
  Bytes memory_capacity_bytes = 0;  ///< Per processor; 0: unknown.
  Noise noise;

  std::map<std::string, TrustedRange> trusted;  ///< By quantity: "block_tokens", "head_dim", ...
  std::map<std::string, std::string> context;   ///< CPU or GPU model, ISA, clocks, versions, date.
  std::map<std::string, std::string> provenance;  ///< Parameter -> where its value comes from.
};

/// The node of `rank`: processors in turn. Throws Error(kUsage) when the machine has none.
int processor_of(const Machine& machine, int rank);

/// Takes the tiles of `attend` and `backward` from a family of `kernels`. Throws Error(kUsage)
/// naming those it has.
void select_kernels(Machine& machine, const std::string& family);

/// Time of an attention op alone, in seconds, from its counts. `sharers` ranks take turns on the
/// processor and share its cache.
double attend_seconds(const AttendCost& cost, const Problem& problem, const struct Op& op,
                      int sharers = 1);
/// The same of a backward op:
///   launch + per_pair * P H + per_pair_dim * P H D5 + per_edge_row * E H D5
///   + (per_row_dim + per_far_row_dim * far) * R H (2 Dqk + Dv) U + per_start_row_dim * Z
///   + per_key_dim * N Hkv (Dqk + Dv) V
/// with D5 = 3 Dqk + 2 Dv for its five products, U units of kBackwardUnitKeys keys for each of
/// which the rows are loaded, V units of kBackwardUnitRows rows for each of which the keys are, and
/// Z gradient elements that the op resets.
double backward_seconds(const AttendCost& cost, const Problem& problem, const struct Op& op,
                        int sharers = 1);

/// Keys and rows of the units in which the CPU kernel works through a block backwards.
inline constexpr int64_t kBackwardUnitKeys = 384;
inline constexpr int64_t kBackwardUnitRows = 576;

}  // namespace ring
