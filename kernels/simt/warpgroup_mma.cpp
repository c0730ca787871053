#include "kernels/simt/warpgroup_mma.h"

#include <algorithm>
#include <limits>

#include "kernels/simt/block.h"
#include "kernels/simt/collectives.h"
#include "kernels/simt/matrix_descriptor.h"
#include "kernels/simt/numbers.h"
#include "kernels/simt/tensor_map.h"

namespace ring::simt {
namespace {

constexpr int kWarpsOfGroup = 4;
constexpr int kDepth = 16;  ///< k of an instruction.
constexpr int kSwizzle128 = 1;
constexpr size_t kOtherRow = 4;  ///< Lanes so far apart hold rows that follow each other.

float element(bool is_half, uint16_t bits) {
  return is_half ? widen(F16{}, bits) : widen(Bf16{}, bits);
}

/// Address, before the swizzle, of 16 bytes: line `line` (row, or k where columns are contiguous),
/// chunk `chunk` of it.
SharedAddress chunk_address(const MatrixDescriptor& at, int line, int chunk) {
  return at.start + static_cast<uint32_t>(line % 8 * kSwizzleRowBytes) +
         static_cast<uint32_t>(line / 8) * at.stride_bytes +
         static_cast<uint32_t>(chunk % 8 * kCopyBytes) +
         static_cast<uint32_t>(chunk / 8) * at.leading_bytes;
}

}  // namespace

WarpgroupMma::WarpgroupMma(Block& block, int warps)
    : block_(block),
      warps_(static_cast<size_t>(warps)),
      issued_(static_cast<size_t>((warps + kWarpsOfGroup - 1) / kWarpsOfGroup)) {}

void WarpgroupMma::reset() {
  std::fill(warps_.begin(), warps_.end(), Warp{});
  for (auto& log : issued_) log.clear();
}

void WarpgroupMma::check_warpgroup(int thread, const WgmmaArgument& what) {
  const auto warp = static_cast<size_t>(thread / kWarp);
  const auto& where = block_.collective_place(thread);
  if (!warps_[warp].is_fenced)
    block_.fail(thread, "multiplies without a wgmma fence after its registers were changed", where);
  for (const uint64_t bits : {what.a_descriptor, what.b_descriptor}) {
    if (what.a != nullptr && bits == what.a_descriptor) continue;
    const MatrixDescriptor at = decode_descriptor(bits);
    if (at.swizzle_mode != kSwizzle128 || at.base_offset != 0)
      block_.fail(thread, "names a matrix whose swizzle is not 128 bytes from base 0", where);
    if (at.start / kSwizzleRowBytes % 8 != 0)
      block_.fail(thread, "names a matrix that begins within a pattern of the swizzle", where);
  }
  auto& log = issued_[warp / kWarpsOfGroup];
  const auto number = static_cast<size_t>(warps_[warp].issued++);
  const Signature own{what.a_descriptor, what.b_descriptor, what.columns, what.accumulates};
  if (number == log.size()) log.push_back(own);
  if (log[number] != own)
    block_.fail(thread, "multiplies other matrices than the warps of its warpgroup", where);
}

void WarpgroupMma::begin_sums(Warp& warp, Op& op) {
  const auto is_own = [&](const Sums& sums) { return sums.key == op.d[0]; };
  if (std::any_of(warp.sums.begin(), warp.sums.end(), is_own)) return;
  const auto columns = static_cast<size_t>(op.what.columns);
  Sums sums{op.d[0], std::vector<float>(16 * columns)};
  for (size_t lane = 0; lane < kWarp; ++lane) {
    for (size_t i = 0; i < columns / 2; ++i) {
      const size_t row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      sums.values[row * columns + column] = op.d[lane][i];
      op.d[lane][i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  warp.sums.push_back(std::move(sums));
}

void WarpgroupMma::end_sums(Warp& warp, const Op& op) {
  const auto is_same = [&](const auto& other) { return other.d[0] == op.d[0]; };
  if (std::any_of(warp.ops.begin(), warp.ops.end(), is_same)) return;
  const auto own = std::find_if(warp.sums.begin(), warp.sums.end(),
                                [&](const Sums& sums) { return sums.key == op.d[0]; });
  const auto columns = static_cast<size_t>(op.what.columns);
  for (size_t lane = 0; lane < kWarp; ++lane) {
    for (size_t i = 0; i < columns / 2; ++i) {
      const size_t row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      op.d[lane][i] = own->values[row * columns + column];
    }
  }
  warp.sums.erase(own);
}

void WarpgroupMma::issue(std::span<const Arrival> lanes) {
  const int thread = lanes[0].thread;
  Op op;
  op.what = *static_cast<const WgmmaArgument*>(lanes[0].argument);
  for (size_t lane = 0; lane < kWarp; ++lane) {
    const auto& own = *static_cast<const WgmmaArgument*>(lanes[lane].argument);
    if (own.a_descriptor != op.what.a_descriptor || own.b_descriptor != op.what.b_descriptor)
      block_.fail(lanes[lane].thread, "multiplies other matrices than its warp",
                  block_.collective_place(thread));
    op.d[lane] = own.d;
    op.a[lane] = own.a;
    if (own.a != nullptr) std::copy_n(own.a, 4, op.a_issued[lane]);
  }
  check_warpgroup(thread, op.what);
  Warp& warp = warps_[static_cast<size_t>(thread / kWarp)];
  read_operands(thread / kWarp, op);
  begin_sums(warp, op);
  if (thread / kWarp % kWarpsOfGroup == 0) ++block_.counters().wgmma;
  warp.ops.push_back(op);
}

void WarpgroupMma::commit(int warp) {
  Warp& own = warps_[static_cast<size_t>(warp)];
  for (Op& op : own.ops) {
    if (op.group < 0) op.group = own.groups;
  }
  ++own.groups;
}

void WarpgroupMma::wait(std::span<const Arrival> lanes, int pending) {
  const int index = lanes[0].thread / kWarp;
  Warp& warp = warps_[static_cast<size_t>(index)];
  const int64_t landing = warp.groups - pending;
  warp.is_fenced = false;
  while (!warp.ops.empty() && warp.ops.front().group >= 0 && warp.ops.front().group < landing) {
    const Op op = warp.ops.front();
    warp.ops.pop_front();
    const auto own = std::find_if(warp.sums.begin(), warp.sums.end(),
                                  [&](const Sums& sums) { return sums.key == op.d[0]; });
    execute(index, op, own->values);
    end_sums(warp, op);
  }
}

void WarpgroupMma::read_a(int warp, const Op& op, float (&a)[16][16]) {
  const int thread = warp * kWarp;
  if (op.what.a == nullptr) {
    const MatrixDescriptor at = decode_descriptor(op.what.a_descriptor);
    for (int row = 0; row < 16; ++row) {
      for (int chunk = 0; chunk < 2; ++chunk) {
        uint16_t bits[8];
        const int line = warp % kWarpsOfGroup * 16 + row;
        const SharedAddress from = swizzled(chunk_address(at, line, chunk));
        block_.require(thread, block_.shared().read_async(warp, from, bits),
                       block_.collective_place(thread));
        for (int i = 0; i < 8; ++i) a[row][chunk * 8 + i] = element(op.what.is_half, bits[i]);
      }
    }
    return;
  }
  for (size_t lane = 0; lane < kWarp; ++lane) {
    for (size_t i = 0; i < 4; ++i) {
      if (op.a[lane][i] != op.a_issued[lane][i])
        block_.fail(thread + static_cast<int>(lane), "changed registers that wgmma was reading",
                    block_.collective_place(thread));
      const uint32_t packed = op.a[lane][i];
      const size_t of = block_.sabotage().swaps_fragments ? lane ^ kOtherRow : lane;
      const size_t row = of / 4 + 8 * (i % 2), column = of % 4 * 2 + 8 * (i / 2);
      a[row][column] = element(op.what.is_half, static_cast<uint16_t>(packed & 0xffffU));
      a[row][column + 1] = element(op.what.is_half, static_cast<uint16_t>(packed >> 16));
    }
  }
}

void WarpgroupMma::read_b(int warp, const Op& op, std::vector<float>& b) {
  const int thread = warp * kWarp, columns = op.what.columns;
  const MatrixDescriptor at = decode_descriptor(op.what.b_descriptor);
  const bool is_transposed = op.what.is_b_transposed;
  const int lines = is_transposed ? kDepth : columns,
            chunks = (is_transposed ? columns : kDepth) / 8;
  b.resize(static_cast<size_t>(kDepth * columns));
  for (int chunk = 0; chunk < chunks; ++chunk) {
    SharedAddress core[8];
    constexpr int kBytes[8] = {16, 16, 16, 16, 16, 16, 16, 16};
    for (int line = 0; line < lines; ++line) {
      const SharedAddress from = swizzled(chunk_address(at, line, chunk));
      uint16_t bits[8];
      block_.require(thread, block_.shared().read_async(warp, from, bits),
                     block_.collective_place(thread));
      for (int i = 0; i < 8; ++i) {
        const int k = is_transposed ? line : chunk * 8 + i;
        const int column = is_transposed ? chunk * 8 + i : line;
        b[static_cast<size_t>(k * columns + column)] = element(op.what.is_half, bits[i]);
      }
      core[line % 8] = from;
      if (line % 8 == 7) block_.counters().bank_conflicts += bank_passes(core, kBytes, 8) - 1;
    }
  }
}

void WarpgroupMma::read_operands(int warp, const Op& op) {
  float a[16][16];
  std::vector<float> b;
  read_a(warp, op, a);
  read_b(warp, op, b);
}

// Products of two 16-bit numbers are exact in fp32; they are added one after the other, by k.
void WarpgroupMma::execute(int warp, const Op& op, std::vector<float>& sums) {
  float a[16][16];
  std::vector<float> b;
  read_a(warp, op, a);
  read_b(warp, op, b);
  if (!op.what.accumulates) std::fill(sums.begin(), sums.end(), 0.0F);
  const auto columns = static_cast<size_t>(op.what.columns);
  for (size_t row = 0; row < 16; ++row) {
    for (size_t k = 0; k < kDepth; ++k) {
      for (size_t column = 0; column < columns; ++column)
        sums[row * columns + column] += a[row][k] * b[k * columns + column];
    }
  }
}

}  // namespace ring::simt
