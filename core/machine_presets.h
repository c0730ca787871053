// Machine presets: GPU machines by name, from datasheets and published figures, not calibrated.
#pragma once

#include <string_view>

#include "core/machine.h"

namespace ring {

/// Whether `text` names a preset: the name of a topology shape, perhaps with ":key=value,...".
bool is_machine_preset(std::string_view text);

/// Any topology with the computation costs of a GPU: "a100", "h100" or "v100", as the datasheets
/// and published charts say. Throws Error(kUsage) for another GPU.
Machine machine_of_shape(struct Shape shape, std::string_view gpu);

/// The machine of a topology shape: "dgx-a100", "hgx-h100:nodes=4", or a shape without a GPU of its
/// own with "gpu=a100" (the default), "gpu=h100" or "gpu=v100": "cluster:nodes=2,gpus=4,gpu=h100".
/// `provenance` says for every figure where it is from; nothing is calibrated. Throws as
/// `make_shape`.
Machine machine_preset(std::string_view text);

}  // namespace ring
