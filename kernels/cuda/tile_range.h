// TileRange: which tiles of keys a block of rows sees, and which of them in full.
#pragma once

#include "kernels/cuda/params.h"
#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::cuda {

/// Of the rows of a block of threads: tiles that any row sees, and tiles that all see in full.
struct TileRange {
  int begin = 0, end = 0;
  int whole_begin = 0, whole_end = 0;
};

/// Every warp works it out by itself.
template <class Config, class Lane>
RING_DEVICE TileRange tile_range(Lane& lane, const KeyRange* spans, int q_rows, int kv_rows,
                                 int first_row) {
  int begin = kv_rows, end = 0, latest_begin = 0, first_end = kv_rows;
  if (spans == nullptr) {
    begin = 0;
    end = kv_rows;
  } else {
    RING_NO_UNROLL
    for (int i = lane.lane(); i < Config::kRows; i += simt::kWarp) {
      if (first_row + i >= q_rows) break;
      const KeyRange span = lane.load_global(spans + first_row + i);
      latest_begin = latest_begin > span.begin ? latest_begin : span.begin;
      first_end = first_end < span.end ? first_end : span.end;
      if (span.begin >= span.end) continue;
      begin = begin < span.begin ? begin : span.begin;
      end = end > span.end ? end : span.end;
    }
    RING_NO_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) {
      const int other_begin = lane.shuffle_xor(begin, mask);
      const int other_end = lane.shuffle_xor(end, mask);
      const int other_latest = lane.shuffle_xor(latest_begin, mask);
      const int other_first = lane.shuffle_xor(first_end, mask);
      begin = begin < other_begin ? begin : other_begin;
      end = end > other_end ? end : other_end;
      latest_begin = latest_begin > other_latest ? latest_begin : other_latest;
      first_end = first_end < other_first ? first_end : other_first;
    }
  }
  TileRange range;
  if (begin >= end) return range;
  range.begin = begin / Config::kKeys;
  range.end = (end + Config::kKeys - 1) / Config::kKeys;
  range.whole_begin = (latest_begin + Config::kKeys - 1) / Config::kKeys;
  range.whole_end = first_end / Config::kKeys;
  return range;
}

}  // namespace ring::cuda
