// What a file that was imported holds, as JSON: the facts, without the lines that were read over.
#pragma once

#include "core/formats/import/imported.h"
#include "experiments/json.h"

namespace ring {

/// Figures keep the units of the files' own tools in their keys: `_us`, `_gb_s`, `_bytes_per_s`.
Json content_json(const Imported& file);
Json findings_json(const Findings& findings);

}  // namespace ring
