// Which layer of a Hugging Face model attends how: full, in a window, in chunks, or not at all.
#pragma once

#include <cstdint>
#include <vector>

#include "core/formats/findings.h"
#include "core/formats/hf_keys.h"
#include "core/model_shape.h"

namespace ring {

struct LayerPlan {
  LayerKind kind = LayerKind::kFull;
  int64_t window = 0;
};

/// One plan per layer, from whatever the config says about it; what the file leaves to the code of
/// its model family is added to `findings` as assumed. Throws Error(kUsage) for contradictions.
std::vector<LayerPlan> plan_layers(const HfKeys& keys, int64_t layers, Findings& findings);

}  // namespace ring
