#include "core/formats/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/hf_keys.h"
#include "core/formats/hf_layers.h"
#include "core/formats/json_text.h"

namespace ring {
namespace {

using nlohmann::json;

constexpr int64_t kMostLayers = 10'000;

/// Python writes NaN and Infinity, which JSON does not have; where they stand outside strings they
/// become null, since no number that matters here can be one of them.
std::string without_python_numbers(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kWords{"-Infinity", "Infinity", "NaN"};
  std::string out;
  out.reserve(text.size());
  bool is_string = false;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    size_t taken = 1;
    if (is_string && rest[0] == '\\') {
      taken = std::min<size_t>(2, rest.size());
    } else if (rest[0] == '"') {
      is_string = !is_string;
    } else if (!is_string) {
      for (const std::string_view word : kWords) {
        if (rest.starts_with(word)) taken = word.size();
      }
    }
    out += taken > 2 ? std::string_view("null") : rest.substr(0, taken);
    i += taken;
  }
  return out;
}

const std::initializer_list<std::string_view> kHeadKeys{"num_attention_heads", "n_head", "n_heads",
                                                        "num_heads", "num_query_heads"};
const std::initializer_list<std::string_view> kLayerKeys{"num_hidden_layers", "n_layer", "n_layers",
                                                         "num_layers"};
const std::initializer_list<std::string_view> kHiddenKeys{"hidden_size", "n_embd", "d_model",
                                                          "model_dim"};

bool has_any(const json& config, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
    const auto found = config.find(key);
    return found != config.end() && !found->is_null();
  });
}

/// The object that describes the text model: the document, or one nested in it.
const json* text_model(const json& config, std::string& pointer, int depth = 0) {
  if (!config.is_object() || depth > 3) return nullptr;
  if (has_any(config, kHeadKeys) && has_any(config, kHiddenKeys)) return &config;
  for (const char* key : {"text_config", "llm_config", "language_config", "thinker_config",
                          "language_model", "text_model", "decoder"}) {
    const auto found = config.find(key);
    if (found == config.end()) continue;
    const std::string outer = pointer;
    pointer += std::string("/") + key;
    if (const json* model = text_model(*found, pointer, depth + 1)) return model;
    pointer = outer;
  }
  return nullptr;
}

[[noreturn]] void throw_foreign(const json& document, const std::string& name) {
  std::vector<std::string_view> missing;
  if (!has_any(document, kHeadKeys)) missing.push_back("num_attention_heads");
  if (!has_any(document, kLayerKeys)) missing.push_back("num_hidden_layers");
  if (!has_any(document, kHiddenKeys)) missing.push_back("hidden_size");
  throw_usage(fmt::format("{}: not a Hugging Face config: {} missing", name,
                          missing.empty() ? "a text model is"
                                          : fmt::format("{}", fmt::join(missing, ", "))),
              "Give the config.json that lies beside the weights of the model.");
}

/// The numbers of attention before the layers are told apart.
struct BaseShape {
  PerLayer heads, kv_heads, head_dim;
  int64_t head_dim_v = 0;  ///< 0: as head_dim.
  int64_t latent_dim = 0;
  bool is_mla = false;
};

std::optional<PerLayer> stated_kv_heads(const HfKeys& keys, int64_t layers) {
  auto kv = keys.per_layer(
      {"num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num"},
      layers);
  if (kv || !keys.has("attn_config")) return kv;
  const json& nested = keys.at("attn_config");
  if (!nested.is_object()) return kv;
  return HfKeys(nested, keys.place("attn_config")).per_layer({"kv_n_heads"}, layers);
}

PerLayer find_kv_heads(const HfKeys& keys, int64_t layers, const PerLayer& heads,
                       Findings& findings) {
  if (auto kv = stated_kv_heads(keys, layers)) return *kv;
  if (keys.flag("multi_query", false)) {
    add_finding(findings, FindingKind::kFound, "multi_query: one KV head");
    return {"multi_query", {1}};
  }
  add_finding(findings, FindingKind::kAssumed,
              "num_key_value_heads is not in the file: as many KV heads as query heads");
  return heads;
}

PerLayer find_head_dim(const HfKeys& keys, int64_t layers, int64_t hidden, const PerLayer& heads,
                       Findings& findings) {
  if (auto dim =
          keys.per_layer({"head_dim", "attention_head_dim", "kv_channels", "d_kv"}, layers)) {
    add_finding(findings, FindingKind::kFound,
                fmt::format("the head dim is stated ({})", dim->key));
    return *dim;
  }
  PerLayer dim{"head_dim", {}};
  for (const int64_t count : heads.values) {
    if (count == 0 || hidden % count != 0) {
      throw_usage(fmt::format("{}: head_dim is missing and {} heads do not divide hidden size {}",
                              keys.file(), count, hidden));
    }
    dim.values.push_back(hidden / count);
  }
  add_finding(findings, FindingKind::kAssumed,
              fmt::format("the head dim is derived as hidden size / heads = {}", dim.values[0]));
  return dim;
}

BaseShape mla_shape(const HfKeys& keys, const PerLayer& heads, Findings& findings) {
  const auto rope = keys.count({"qk_rope_head_dim"}), plain = keys.count({"qk_nope_head_dim"});
  const auto value = keys.count({"v_head_dim"}), latent = keys.count({"kv_lora_rank"});
  if (!rope || !plain || !value) {
    throw_usage(
        fmt::format("{}: kv_lora_rank is there but qk_rope_head_dim, qk_nope_head_dim or "
                    "v_head_dim is missing",
                    keys.file()));
  }
  add_finding(
      findings, FindingKind::kFound,
      fmt::format("multi-head latent attention: QK dim {} ({} + {}), V dim {}, latent cache of {} "
                  "values a token ({} + {}); num_key_value_heads does not apply",
                  *plain + *rope, *plain, *rope, *value, *latent + *rope, *latent, *rope));
  BaseShape base{heads,  heads,           {"qk_nope_head_dim + qk_rope_head_dim", {*plain + *rope}},
                 *value, *latent + *rope, true};
  return base;
}

BaseShape base_shape(const HfKeys& keys, int64_t layers, int64_t hidden, Findings& findings) {
  const PerLayer heads = *keys.per_layer(kHeadKeys, layers);
  if (keys.has("kv_lora_rank")) return mla_shape(keys, heads, findings);
  BaseShape base;
  base.heads = heads;
  base.kv_heads = find_kv_heads(keys, layers, heads, findings);
  base.head_dim = find_head_dim(keys, layers, hidden, heads, findings);
  base.head_dim_v = keys.count({"v_head_dim"}).value_or(0);
  return base;
}

/// Some families give their full layers head dims, KV heads and shared K and V of their own.
void apply_global_keys(const HfKeys& keys, AttentionShape& shape) {
  shape.head_dim = shape.head_dim_v = keys.count({"global_head_dim"}).value_or(shape.head_dim);
  shape.kv_heads = keys.count({"num_global_key_value_heads"}).value_or(shape.kv_heads);
  shape.is_value_key = keys.flag("attention_k_eq_v", false);
}

AttentionShape shape_of_layer(const HfKeys& keys, const BaseShape& base, const LayerPlan& plan,
                              int64_t layer) {
  AttentionShape shape;
  shape.kind = plan.kind;
  if (plan.kind == LayerKind::kOther) return shape;
  shape.window = plan.window;
  shape.heads = base.heads.at(layer);
  shape.kv_heads = base.kv_heads.at(layer);
  shape.head_dim = base.head_dim.at(layer);
  shape.head_dim_v = base.head_dim_v == 0 ? shape.head_dim : base.head_dim_v;
  shape.latent_dim = base.latent_dim;
  if (plan.kind == LayerKind::kFull && !base.is_mla && keys.has("global_head_dim")) {
    apply_global_keys(keys, shape);
  }
  if (shape.heads == 0 || shape.kv_heads == 0) return AttentionShape{LayerKind::kOther};
  if (shape.heads % shape.kv_heads != 0) {
    throw_usage(fmt::format("{}: {} KV heads do not divide {} query heads", keys.file(),
                            shape.kv_heads, shape.heads));
  }
  return shape;
}

std::vector<LayerGroup> group_layers(const HfKeys& keys, const BaseShape& base,
                                     const std::vector<LayerPlan>& plans) {
  std::vector<LayerGroup> groups;
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const AttentionShape shape = shape_of_layer(keys, base, plans[i], layer);
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const LayerGroup& g) { return g.shape == shape; });
    if (known == groups.end()) {
      groups.push_back({shape, {layer}});
    } else {
      known->layers.push_back(layer);
    }
  }
  return groups;
}

DType find_dtype(const HfKeys& inner, const HfKeys& outer, Findings& findings) {
  for (const HfKeys* keys : {&inner, &outer}) {
    for (const std::string_view key : {"torch_dtype", "dtype"}) {
      const auto word = keys->text(key);
      if (!word) continue;
      if (*word == "bfloat16") return DType::kBF16;
      if (*word == "float16" || *word == "half") return DType::kF16;
      if (*word == "float32" || *word == "float") return DType::kF32;
      add_finding(findings, FindingKind::kIgnored,
                  fmt::format("{} \"{}\" is not one that attention is computed in; bf16 is taken",
                              key, *word));
      return DType::kBF16;
    }
  }
  add_finding(findings, FindingKind::kAssumed, "the dtype is not in the file: bf16");
  return DType::kBF16;
}

void describe_groups(const ModelShape& model, Findings& findings) {
  for (const LayerGroup& group : model.groups) {
    const AttentionShape& s = group.shape;
    std::string text = fmt::format("{} layers: {}", group.layers.size(), name(s.kind));
    if (s.window > 0) text += fmt::format(" of {}", s.window);
    if (s.kind != LayerKind::kOther) {
      text += fmt::format(", {} heads, {} KV heads, head dim {}", s.heads, s.kv_heads, s.head_dim);
      if (s.head_dim_v != s.head_dim) text += fmt::format(" (V {})", s.head_dim_v);
      if (s.is_value_key) text += ", K serves as V";
      text += fmt::format(", {} bytes of KV a token", s.kv_bytes_per_token(model.dtype));
      if (s.latent_dim > 0) {
        text += fmt::format(", {} bytes compressed", s.latent_bytes_per_token(model.dtype));
      }
    }
    add_finding(findings, FindingKind::kFound, std::move(text));
  }
}

std::string model_name(const HfKeys& outer, const std::string& file) {
  if (outer.has("architectures") && outer.at("architectures").is_array() &&
      !outer.at("architectures").empty() && outer.at("architectures")[0].is_string()) {
    return outer.at("architectures")[0].get<std::string>();
  }
  return outer.text("model_type").value_or(file);
}

}  // namespace

HfConfig parse_hf_config(std::string_view text, const std::string& name) {
  const json document = parse_json(without_python_numbers(text), name);
  std::string pointer;
  const json* nested = text_model(document, pointer);
  if (nested == nullptr || !has_any(*nested, kLayerKeys)) {
    throw_foreign(nested == nullptr ? document : *nested, name);
  }
  const HfKeys outer(document, {name, ""}), keys(*nested, {name, pointer});

  HfConfig config;
  if (!pointer.empty()) {
    add_finding(config.findings, FindingKind::kFound, "the text model is at " + pointer);
  }
  ModelShape& model = config.model;
  model.name = model_name(outer, name);
  model.layers = *keys.count(kLayerKeys);
  if (model.layers > kMostLayers) throw_usage(fmt::format("{}: {} layers", name, model.layers));
  model.hidden = *keys.count(kHiddenKeys);
  model.max_positions =
      keys.count({"max_position_embeddings", "n_positions", "max_seq_len", "seq_length"})
          .value_or(0);
  model.dtype = find_dtype(keys, outer, config.findings);
  const BaseShape base = base_shape(keys, model.layers, model.hidden, config.findings);
  model.groups = group_layers(keys, base, plan_layers(keys, model.layers, config.findings));
  describe_groups(model, config.findings);
  return config;
}

HfConfig read_hf_config(const std::string& path) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  const std::string file =
      is_folder ? (std::filesystem::path(path) / "config.json").string() : path;
  return parse_hf_config(read_file(file), file);
}

}  // namespace ring
