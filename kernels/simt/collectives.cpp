#include "kernels/simt/collectives.h"

#include <algorithm>
#include <cstring>

#include "kernels/simt/numbers.h"

namespace ring::simt {
namespace {

constexpr size_t kOtherRow = 4;  ///< Lanes so far apart hold rows that follow each other.
constexpr int kBanks = 32;

template <class Argument>
Argument& argument_of(const Arrival& arrival) {
  return *static_cast<Argument*>(arrival.argument);
}

template <class Element>
void unpack(uint32_t packed, float* low, float* high) {
  *low = widen(Element{}, static_cast<uint16_t>(packed & 0xffffU));
  *high = widen(Element{}, static_cast<uint16_t>(packed >> 16));
}

// Products of two 16-bit numbers are exact in fp32; they are added one after the other, by k.
template <class Element>
void execute_mma(Block& block, std::span<const Arrival> lanes) {
  float a[16][16], b[16][8], d[16][8];
  for (size_t lane = 0; lane < kWarp; ++lane) {
    const auto& argument = argument_of<MmaArgument>(lanes[lane]);
    const size_t g = lane / 4, t = lane % 4;
    for (size_t i = 0; i < 4; ++i) {
      float* at = &a[g + 8 * (i % 2)][2 * t + 8 * (i / 2)];
      unpack<Element>(argument.a[i], at, at + 1);
    }
    for (size_t i = 0; i < 2; ++i)
      unpack<Element>(argument.b[i], &b[2 * t + 8 * i][g], &b[2 * t + 1 + 8 * i][g]);
    for (size_t i = 0; i < 4; ++i) d[g + 8 * (i / 2)][2 * t + i % 2] = argument.d[i];
  }
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) d[row][column] += a[row][k] * b[k][column];
    }
  }
  for (size_t lane = 0; lane < kWarp; ++lane) {
    auto& argument = argument_of<MmaArgument>(lanes[lane]);
    const size_t g = lane / 4, t = lane % 4;
    for (size_t i = 0; i < 4; ++i) argument.d[i] = d[g + 8 * (i / 2)][2 * t + i % 2];
  }
  ++block.counters().mma;
}

}  // namespace

// Different words of one bank come one after the other.
int bank_passes(const SharedAddress* addresses, const int* bytes, int count) {
  uint32_t words[kBanks][kBanks];
  int used[kBanks] = {};
  int most = 0;
  for (int i = 0; i < count; ++i) {
    for (int offset = 0; offset < bytes[i]; offset += 4) {
      const uint32_t word = (addresses[i] + static_cast<uint32_t>(offset)) / 4;
      const auto bank = word % kBanks;
      uint32_t* const end = words[bank] + used[bank];
      if (std::find(words[bank], end, word) != end) continue;
      words[bank][used[bank]++] = word;
      most = std::max(most, used[bank]);
    }
  }
  return most;
}

namespace {

// Lanes are served in groups whose accesses fill the banks once.
void count_conflicts(Block& block, const SharedAddress* addresses, const int* bytes) {
  int widest = 4;
  for (int i = 0; i < kWarp; ++i) widest = std::max(widest, bytes[i]);
  const int group = kWarp * 4 / widest;
  for (int first = 0; first < kWarp; first += group) {
    const int taken = bank_passes(addresses + first, bytes + first, group);
    block.counters().bank_conflicts += std::max(taken - 1, 0);
  }
}

template <bool kTransposed>
void execute_ldmatrix_of(Block& block, std::span<const Arrival> lanes) {
  uint16_t rows[kWarp][8];
  SharedAddress addresses[kWarp];
  int bytes[kWarp];
  const Sabotage& sabotage = block.sabotage();
  for (size_t lane = 0; lane < kWarp; ++lane) {
    addresses[lane] = argument_of<LdmatrixArgument>(lanes[lane]).row;
    if (sabotage.skips_swizzled_bit) addresses[lane] ^= kCopyBytes;
    bytes[lane] = kCopyBytes;
    const int thread = lanes[lane].thread;
    block.require(thread, block.shared().read(thread, addresses[lane], rows[lane], kCopyBytes),
                  block.collective_place(thread));
  }
  count_conflicts(block, addresses, bytes);
  for (size_t lane = 0; lane < kWarp; ++lane) {
    const size_t to = sabotage.swaps_fragments ? lane ^ kOtherRow : lane;
    uint32_t* const r = argument_of<LdmatrixArgument>(lanes[to]).r;
    const size_t g = lane / 4, t = 2 * (lane % 4);
    for (size_t i = 0; i < 4; ++i) {
      const uint32_t low = kTransposed ? rows[8 * i + t][g] : rows[8 * i + g][t];
      const uint32_t high = kTransposed ? rows[8 * i + t + 1][g] : rows[8 * i + g][t + 1];
      r[i] = low | (high << 16);
    }
  }
  ++block.counters().ldmatrix;
}

void count_shared(Block& block, std::span<const Arrival> lanes) {
  SharedAddress addresses[kWarp];
  int bytes[kWarp];
  for (size_t lane = 0; lane < kWarp; ++lane) {
    const auto& argument = argument_of<SharedArgument>(lanes[lane]);
    addresses[lane] = argument.at;
    bytes[lane] = argument.bytes;
  }
  count_conflicts(block, addresses, bytes);
}

}  // namespace

void execute_mma_bf16(Block& block, std::span<const Arrival> lanes) {
  execute_mma<Bf16>(block, lanes);
}
void execute_mma_f16(Block& block, std::span<const Arrival> lanes) {
  execute_mma<F16>(block, lanes);
}
void execute_ldmatrix(Block& block, std::span<const Arrival> lanes) {
  execute_ldmatrix_of<false>(block, lanes);
}
void execute_ldmatrix_trans(Block& block, std::span<const Arrival> lanes) {
  execute_ldmatrix_of<true>(block, lanes);
}

void execute_shuffle(Block& block, std::span<const Arrival> lanes) {
  uint32_t values[kWarp];
  for (size_t lane = 0; lane < kWarp; ++lane)
    values[lane] = argument_of<ShuffleArgument>(lanes[lane]).value;
  for (const Arrival& lane : lanes) {
    auto& argument = argument_of<ShuffleArgument>(lane);
    argument.value = values[argument.source_lane];
  }
  ++block.counters().shuffles;
}

void execute_any(Block&, std::span<const Arrival> lanes) {
  bool any = false;
  for (const Arrival& lane : lanes) any = any || argument_of<VoteArgument>(lane).value;
  for (const Arrival& lane : lanes) argument_of<VoteArgument>(lane).value = any;
}

void execute_warp_barrier(Block& block, std::span<const Arrival> lanes) {
  block.shared().sync_warp(lanes[0].thread / kWarp);
}

void execute_shared_load(Block& block, std::span<const Arrival> lanes) {
  count_shared(block, lanes);
  for (const Arrival& lane : lanes) {
    const auto& argument = argument_of<SharedArgument>(lane);
    if (argument.bytes == 0) continue;
    block.require(lane.thread,
                  block.shared().read(lane.thread, argument.at, argument.to, argument.bytes),
                  block.collective_place(lane.thread));
  }
}

void execute_shared_store(Block& block, std::span<const Arrival> lanes) {
  count_shared(block, lanes);
  for (const Arrival& lane : lanes) {
    const auto& argument = argument_of<SharedArgument>(lane);
    if (argument.bytes == 0) continue;
    block.require(lane.thread,
                  block.shared().write(lane.thread, argument.at, argument.from, argument.bytes),
                  block.collective_place(lane.thread));
  }
}

void execute_copy(Block& block, std::span<const Arrival> lanes) {
  SharedAddress addresses[kWarp];
  int bytes[kWarp];
  for (size_t lane = 0; lane < kWarp; ++lane) {
    addresses[lane] = argument_of<CopyArgument>(lanes[lane]).to;
    bytes[lane] = kCopyBytes;
  }
  count_conflicts(block, addresses, bytes);
  for (const Arrival& lane : lanes) {
    const auto& argument = argument_of<CopyArgument>(lane);
    block.begin_copy(lane.thread, argument.to, argument.from);
  }
}

}  // namespace ring::simt
