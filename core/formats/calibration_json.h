// The calibration part of a machine file: samples, fitted parameters and fit quality, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/calibration.h"
#include "core/formats/json_object.h"

namespace ring {

nlohmann::ordered_json calibration_to_json(const Calibration& calibration);
/// Throws Error(kUsage) with the place.
Calibration calibration_from_json(const nlohmann::json& value, const JsonPlace& place);

}  // namespace ring
