// Attention on one device, the rows that rings are compared with: flash, chunked and naive.
#pragma once

#include "core/strategy.h"

namespace ring {

/// One op over all keys; the kernel works by tiles and stores no scores.
Strategy flash_strategy();
/// Query chunks of `block_tokens` rows against key blocks, one state for one chunk: memory does not
/// grow with the sequence. Source: Rabe and Staats, arXiv 2112.05682.
Strategy chunked_strategy();
/// All scores of a head are stored: memory grows with the square of the sequence.
Strategy naive_strategy();

}  // namespace ring
