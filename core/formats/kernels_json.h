// Kernel tables of machine files: tile kernels and families of them, as JSON.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/formats/json_object.h"
#include "core/machine.h"

namespace ring {

nlohmann::ordered_json tiles_to_json(const std::vector<TileKernel>& tiles);
/// Throws Error(kUsage) with the place for counts below 1, times below 0, or head dims that do not
/// ascend.
std::vector<TileKernel> tiles_from_json(const nlohmann::json& value, const JsonPlace& place);

nlohmann::ordered_json kernels_to_json(const std::map<std::string, KernelFamily>& kernels);
std::map<std::string, KernelFamily> kernels_from_json(const nlohmann::json& value,
                                                      const JsonPlace& place);

}  // namespace ring
