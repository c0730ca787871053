#include "core/formats/hf_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;
using Plans = std::vector<LayerPlan>;

/// Window or chunk length that a layer type needs.
int64_t needed(const HfKeys& keys, std::string_view key, std::string_view layer_type) {
  const auto value = keys.count({key});
  if (value) return *value;
  throw_usage(
      fmt::format("{}: layers are \"{}\" but \"{}\" is missing", keys.file(), layer_type, key));
}

LayerPlan plan_of_type(const HfKeys& keys, const std::string& type, const JsonPlace& place) {
  static constexpr std::array<std::string_view, 12> kTypes{"full_attention",
                                                           "attention",
                                                           "sliding_attention",
                                                           "local_attention",
                                                           "global_attention",
                                                           "chunked_attention",
                                                           "linear_attention",
                                                           "mamba",
                                                           "mamba2",
                                                           "conv",
                                                           "recurrent",
                                                           "moe"};
  switch (index_of_word(type, kTypes, place.text())) {
    case 0:
    case 1:
    case 4:
      return {LayerKind::kFull, 0};
    case 2:
    case 3:
      return {LayerKind::kSliding, needed(keys, "sliding_window", type)};
    case 5:
      return {LayerKind::kChunked, needed(keys, "attention_chunk_size", type)};
    default:
      return {LayerKind::kOther, 0};
  }
}

Plans plans_of_types(const HfKeys& keys, std::string_view key, int64_t layers) {
  const json& types = as_array(keys.at(key), keys.place(key));
  if (static_cast<int64_t>(types.size()) != layers) {
    throw_usage(fmt::format("{}: a list of {} for {} layers", keys.place(key).text(), types.size(),
                            layers));
  }
  Plans plans;
  for (size_t i = 0; i < types.size(); ++i) {
    const JsonPlace place = keys.place(key).at(i);
    plans.push_back(plan_of_type(keys, as_string(types[i], place), place));
  }
  return plans;
}

/// `is_first` says which layers have the first plan; the others have the second.
Plans choose(int64_t layers, LayerPlan first, LayerPlan second,
             const std::function<bool(int64_t)>& is_first) {
  Plans plans;
  for (int64_t i = 0; i < layers; ++i) plans.push_back(is_first(i) ? first : second);
  return plans;
}

Plans chunked_plans(const HfKeys& keys, int64_t layers, Findings& findings) {
  const LayerPlan chunked{LayerKind::kChunked, *keys.count({"attention_chunk_size"})};
  if (keys.has("no_rope_layers")) {
    const std::vector<int64_t> has_rope = keys.list("no_rope_layers");
    if (static_cast<int64_t>(has_rope.size()) == layers) {
      return choose(layers, chunked, {},
                    [&](int64_t i) { return has_rope[static_cast<size_t>(i)] != 0; });
    }
    if (!has_rope.empty()) {
      throw_usage(fmt::format("{}: a list of {} for {} layers", keys.place("no_rope_layers").text(),
                              has_rope.size(), layers));
    }
  }
  const int64_t interval = keys.count({"no_rope_layer_interval"}).value_or(4);
  add_finding(
      findings, FindingKind::kAssumed,
      fmt::format("which layers are chunked is not in the file: every {}th is taken as full, the "
                  "rest as chunked, as the code of this family does",
                  interval));
  return choose(layers, chunked, {}, [=](int64_t i) { return (i + 1) % interval != 0; });
}

Plans plans_of_pattern(const HfKeys& keys, int64_t layers) {
  const std::string pattern = *keys.text("hybrid_override_pattern");
  if (static_cast<int64_t>(pattern.size()) != layers) {
    throw_usage(fmt::format("{}: {} letters for {} layers",
                            keys.place("hybrid_override_pattern").text(), pattern.size(), layers));
  }
  return choose(layers, {}, {LayerKind::kOther, 0},
                [&](int64_t i) { return pattern[static_cast<size_t>(i)] == '*'; });
}

/// Models in which only some layers attend; empty when the config does not speak of such.
Plans hybrid_plans(const HfKeys& keys, int64_t layers) {
  const LayerPlan full{LayerKind::kFull, 0}, other{LayerKind::kOther, 0};
  if (keys.has("hybrid_override_pattern")) return plans_of_pattern(keys, layers);
  if (const auto interval = keys.count({"full_attention_interval"})) {
    return choose(layers, full, other, [=](int64_t i) { return (i + 1) % *interval == 0; });
  }
  if (const auto period = keys.count({"attn_layer_period"})) {
    const int64_t offset =
        keys.has("attn_layer_offset")
            ? as_integer(keys.at("attn_layer_offset"), keys.place("attn_layer_offset"), 0)
            : 0;
    return choose(layers, full, other, [=](int64_t i) { return i % *period == offset; });
  }
  for (const std::string_view key : {"full_attn_idxs", "attn_layer_indices"}) {
    if (!keys.has(key)) continue;
    const std::vector<int64_t> at = keys.list(key);
    return choose(layers, full, other,
                  [&](int64_t i) { return std::find(at.begin(), at.end(), i) != at.end(); });
  }
  if (keys.has("attn_type_list")) {
    const auto types = keys.per_layer({"attn_type_list"}, layers);
    return choose(layers, full, other, [&](int64_t i) { return types->at(i) == 1; });
  }
  return {};
}

/// The period with which one of several sliding layers is full instead, where the family has one.
std::optional<int64_t> sliding_period(const HfKeys& keys, Findings& findings) {
  if (const auto period = keys.count({"sliding_window_pattern"})) return period;
  const std::string family = keys.text("model_type").value_or("");
  int64_t period = 0;
  if (family == "gemma2") period = 2;
  if (family.starts_with("gemma3")) period = 6;
  if (family == "cohere2") period = 4;
  if (period == 0) return std::nullopt;
  add_finding(
      findings, FindingKind::kAssumed,
      fmt::format("which layers slide is not in the file: every {}th is taken as full, the rest as "
                  "sliding, as the code of {} does",
                  period, family));
  return period;
}

Plans sliding_plans(const HfKeys& keys, int64_t layers, Findings& findings) {
  const LayerPlan full{LayerKind::kFull, 0};
  if (!keys.flag("use_sliding_window", true)) {
    add_finding(findings, FindingKind::kIgnored,
                "sliding_window is set but use_sliding_window is false");
    return Plans(static_cast<size_t>(layers), full);
  }
  if (keys.at("sliding_window").is_array()) {
    const auto windows = keys.per_layer({"sliding_window"}, layers);
    Plans plans;
    for (int64_t i = 0; i < layers; ++i) {
      const int64_t window = windows->at(i);
      plans.push_back(window == 0 ? full : LayerPlan{LayerKind::kSliding, window});
    }
    return plans;
  }
  const LayerPlan sliding{LayerKind::kSliding, *keys.count({"sliding_window"})};
  if (const auto period = sliding_period(keys, findings)) {
    return choose(layers, sliding, full, [=](int64_t i) { return (i + 1) % *period != 0; });
  }
  if (keys.has("use_sliding_window") && keys.has("max_window_layers")) {
    const int64_t first =
        as_integer(keys.at("max_window_layers"), keys.place("max_window_layers"), 0);
    return choose(layers, full, sliding, [=](int64_t i) { return i < first; });
  }
  add_finding(findings, FindingKind::kAssumed,
              "the window holds for every layer, since the file names no pattern");
  return Plans(static_cast<size_t>(layers), sliding);
}

}  // namespace

std::vector<LayerPlan> plan_layers(const HfKeys& keys, int64_t layers, Findings& findings) {
  for (const std::string_view key : {"layer_types", "layers_block_type"}) {
    if (keys.has(key)) return plans_of_types(keys, key, layers);
  }
  if (keys.has("attention_chunk_size")) return chunked_plans(keys, layers, findings);
  if (Plans plans = hybrid_plans(keys, layers); !plans.empty()) return plans;
  if (keys.has("sliding_window")) return sliding_plans(keys, layers, findings);
  return Plans(static_cast<size_t>(layers));
}

}  // namespace ring
