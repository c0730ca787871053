// Timeline CSV: one slice a line, for spreadsheets and scripts.
#pragma once

#include <span>
#include <string>

#include "core/timeline.h"

namespace ring {

/// Columns: origin, rank, index, kind, lane, step, peer, kv_shard, bytes, flops, posted_ps,
/// start_ps, end_ps; an empty cell where a number does not apply. Lines end as RFC 4180 says not,
/// but as tools on Linux expect: with a newline alone.
std::string timeline_csv(std::span<const Timeline* const> timelines);

}  // namespace ring
