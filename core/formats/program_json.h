// What a program computes, as JSON: the problem and the tuning, which together identify it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/formats/json_object.h"
#include "core/problem.h"
#include "core/tuning.h"

namespace ring {

nlohmann::ordered_json problem_to_json(const Problem& problem);
/// Throws Error(kUsage) with the place, also for what `validate` refuses.
Problem problem_from_json(const nlohmann::json& value, const JsonPlace& place);

nlohmann::ordered_json tuning_to_json(const Tuning& tuning);
Tuning tuning_from_json(const nlohmann::json& value, const JsonPlace& place);

}  // namespace ring
