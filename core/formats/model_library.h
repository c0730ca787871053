// Model shapes known by name, and where else a model's shape can come from.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/model_shape.h"

namespace ring {

struct ShippedModel {
  std::string_view name;     ///< "llama-3-8b".
  std::string_view summary;  ///< "32 heads over 8 KV heads of 128".
};

/// Attention shapes of public models, as their config.json states them.
std::span<const ShippedModel> shipped_models();
bool is_shipped_model(std::string_view name);
/// Throws Error(kUsage) with the nearest spelling for a name that is not known.
ModelShape shipped_model(std::string_view name);

/// `path` is read as a Hugging Face config (or the folder of one) where there is such a file; else
/// `name` must be that of a shipped model. Throws Error(kUsage).
ModelShape model_shape(const std::string& path, const std::string& name);

}  // namespace ring
