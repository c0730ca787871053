// The collectives of a warp, as the last lane to arrive does them for all.
#pragma once

#include <span>

#include "kernels/simt/block.h"

namespace ring::simt {

/// d (16, 8) += a (16, 16) b (16, 8), fp32. Of lane l with g = l / 4 and t = l % 4:
///   a[0], a[2]  row g,     columns 2t, 2t + 1 and 2t + 8, 2t + 9; a[1], a[3] the same of row g + 8
///   b[0], b[1]  column g,  rows    2t, 2t + 1 and 2t + 8, 2t + 9
///   d[0], d[1]  row g,     columns 2t, 2t + 1; d[2], d[3] the same of row g + 8
/// (PTX ISA, fragments of mma.m16n8k16.)
struct MmaArgument {
  float* d = nullptr;
  const uint32_t* a = nullptr;
  uint32_t b[2] = {};
};
void execute_mma_bf16(Block& block, std::span<const Arrival> lanes);
void execute_mma_f16(Block& block, std::span<const Arrival> lanes);

/// Lane 8 i + j gives the address of row j of matrix i, 8 elements of 16 bits. Lane l gets as r[i]
/// elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4 of matrix i; transposed: of column l / 4.
struct LdmatrixArgument {
  uint32_t* r = nullptr;
  SharedAddress row = 0;
};
void execute_ldmatrix(Block& block, std::span<const Arrival> lanes);
void execute_ldmatrix_trans(Block& block, std::span<const Arrival> lanes);

struct ShuffleArgument {
  uint32_t value = 0;
  int source_lane = 0;
};
void execute_shuffle(Block& block, std::span<const Arrival> lanes);

struct VoteArgument {
  bool value = false;
};
void execute_any(Block& block, std::span<const Arrival> lanes);

void execute_warp_barrier(Block& block, std::span<const Arrival> lanes);

/// Lanes with `bytes` 0 take no part.
struct SharedArgument {
  SharedAddress at = 0;
  void* to = nullptr;
  const void* from = nullptr;
  int bytes = 0;
};
void execute_shared_load(Block& block, std::span<const Arrival> lanes);
void execute_shared_store(Block& block, std::span<const Arrival> lanes);

struct CopyArgument {
  SharedAddress to = 0;
  const void* from = nullptr;
};
void execute_copy(Block& block, std::span<const Arrival> lanes);

/// How many passes over the banks of shared memory the accesses of `count` lanes take.
int bank_passes(const SharedAddress* addresses, const int* bytes, int count);

// Of sm_90; see PhaseBarriers and WarpgroupMma.

/// Lanes with `takes_part` false do nothing.
struct ArriveArgument {
  SharedAddress barrier = 0;
  int announced_bytes = 0;
  bool takes_part = true;
};
void execute_arrive(Block& block, std::span<const Arrival> lanes);
struct BarrierInitArgument {
  SharedAddress barrier = 0;
  int arrivals = 0;
  bool takes_part = true;
};
void execute_barrier_init(Block& block, std::span<const Arrival> lanes);
void execute_barrier_fence(Block& block, std::span<const Arrival> lanes);
struct TensorCopyArgument {
  SharedAddress to = 0, barrier = 0;
  const TensorMap* map = nullptr;
  TensorPlace place;
  bool takes_part = true;
};
void execute_tensor_copy(Block& block, std::span<const Arrival> lanes);
void execute_wgmma(Block& block, std::span<const Arrival> lanes);
void execute_wgmma_fence(Block& block, std::span<const Arrival> lanes);
void execute_wgmma_commit(Block& block, std::span<const Arrival> lanes);
struct WgmmaWaitArgument {
  int pending = 0;
};
void execute_wgmma_wait(Block& block, std::span<const Arrival> lanes);
void execute_nothing(Block& block, std::span<const Arrival> lanes);

}  // namespace ring::simt
