// Hugging Face config.json in: the shape of a model's attention, layer by layer.
#pragma once

#include <string>
#include <string_view>

#include "core/formats/findings.h"
#include "core/model_shape.h"

namespace ring {

struct HfConfig {
  ModelShape model;
  Findings findings;  ///< What was stated, what was assumed, what the file does not say.
};

/// Reads heads, KV heads, head dims (stated or derived), latent caches, windows, chunks and layers
/// without attention, from the document or the text model nested in it. Throws Error(kUsage)
/// naming the missing keys for other files, and for values that contradict each other.
HfConfig parse_hf_config(std::string_view text, const std::string& name);
/// `path` may also be the folder that holds config.json.
HfConfig read_hf_config(const std::string& path);

}  // namespace ring
