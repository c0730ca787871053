// Scenario files: problem, tuning and machine as TOML that people write.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/model_shape.h"
#include "core/scenario.h"

namespace ring {

/// Finds the model that a scenario names: a config.json or a shipped shape.
using ModelFinder = std::function<ModelShape(const std::string& model)>;

/// `name` is the file's name in messages. Keys that are left out keep their defaults. Counts may
/// have a suffix ("4Ki"), times need their unit ("3us"). Throws Error(kUsage) with file:line for
/// unknown keys (with the nearest), wrong types, values out of range, and contradictions such as
/// `heads` beside `model`.
Scenario parse_scenario(std::string_view text, const std::string& name,
                        const ModelFinder& find_model);

/// The model is read as a Hugging Face config, relative to the folder of the scenario file.
Scenario read_scenario(const std::string& path);

/// A file that gives back the same scenario; every key is written.
std::string scenario_toml(const Scenario& scenario);

}  // namespace ring
