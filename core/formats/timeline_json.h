// A timeline and its metrics, as JSON: slices as rows under named columns.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/formats/json_object.h"
#include "core/metrics.h"
#include "core/timeline.h"

namespace ring {

nlohmann::ordered_json timeline_to_json(const Timeline& timeline);
/// Throws Error(kUsage) with the place, also for slices of ranks or lanes that do not exist and for
/// slices that end before they start. Slices are sorted as a Timeline keeps them.
Timeline timeline_from_json(const nlohmann::json& value, const JsonPlace& place);

nlohmann::ordered_json metrics_to_json(const Metrics& metrics);
Metrics metrics_from_json(const nlohmann::json& value, const JsonPlace& place);

/// The kind with this name; throws Error(kUsage) with the place and the known kinds.
OpKind parse_op_kind(std::string_view word, const std::string& where);

}  // namespace ring
