// Wording: how problems, tunings, intervals and causes are put into words, the same everywhere.
#pragma once

#include <string>

#include "core/blame.h"
#include "core/formats/run_json.h"
#include "core/problem.h"
#include "core/tuning.h"

namespace ring {

/// "8 heads over 2 KV heads of 128, 4096 tokens, causal, bf16, forward".
std::string describe(const Problem& problem);
/// "pass-kv on 4 ranks, zigzag, blocks of 512, whole shards a message, depth 2".
std::string describe(const Tuning& tuning);
/// "between 11.9 ms and 13.1 ms in 90 % of runs".
std::string describe(const PredictedInterval& interval);

/// What the time is spent on: the largest shares of the critical path, in one sentence.
std::string bottleneck_sentence(const Blame& blame);

/// As format_time, but "0" for no time at all.
std::string duration_text(Picoseconds time_ps);

/// "+3.1 %"; signed, one digit after the point.
std::string signed_percent(double fraction);

}  // namespace ring
