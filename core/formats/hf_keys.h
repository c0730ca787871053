// HfKeys: looks up what a Hugging Face config calls by one of several names, or per layer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/json_object.h"

namespace ring {

/// A number that may differ from layer to layer.
struct PerLayer {
  std::string key;
  std::vector<int64_t> values;  ///< One for all layers, or one each.
  int64_t at(int64_t layer) const {
    return values.size() == 1 ? values[0] : values[static_cast<size_t>(layer)];
  }
  bool is_uniform() const;
};

/// Null counts as absent throughout, as it does for the readers of these files.
class HfKeys {
 public:
  HfKeys(const nlohmann::json& config, JsonPlace place) : config_(&config), place_(place) {}

  bool has(std::string_view key) const;
  const nlohmann::json& at(std::string_view key) const;
  JsonPlace place(std::string_view key) const { return place_.at(key); }
  const std::string& file() const { return place_.file; }

  /// The first of the keys that is there, as a positive number.
  std::optional<int64_t> count(std::initializer_list<std::string_view> keys) const;
  /// The same, also as a list with one number per layer; throws Error(kUsage) for another length.
  std::optional<PerLayer> per_layer(std::initializer_list<std::string_view> keys,
                                    int64_t layers) const;
  std::optional<std::string> text(std::string_view key) const;
  bool flag(std::string_view key, bool fallback) const;
  /// A list of small numbers, such as layer indices.
  std::vector<int64_t> list(std::string_view key) const;

 private:
  const nlohmann::json* config_;
  JsonPlace place_;
};

}  // namespace ring
