// Why as JSON: what `ringscope why --json` prints.
#pragma once

#include "experiments/json.h"
#include "sim/why.h"

namespace ring {

/// The document without its heading (docs/reasons.md). `machine` may be null.
Json why_json(const Why& why, const Machine* machine);

}  // namespace ring
