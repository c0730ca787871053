#include "core/formats/model_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/error.h"
#include "core/formats/hf_config.h"
#include "core/paths.h"

namespace ring {

namespace {

/// Layers 0, every, 2 every ... have full attention, the others the window; every = 1: all full.
struct ModelRow {
  ShippedModel info;
  int64_t layers, hidden, heads, kv_heads, head_dim, head_dim_v, max_positions;
  int64_t window = 0;
  int64_t full_every = 1;
};

// Source: the config.json that is published with each model.
constexpr std::array<ModelRow, 13> kModels{{
    {{"llama-3-8b", "32 heads over 8 KV heads of 128"}, 32, 4096, 32, 8, 128, 128, 131072},
    {{"llama-3-70b", "64 heads over 8 KV heads of 128"}, 80, 8192, 64, 8, 128, 128, 131072},
    {{"llama-3-405b", "128 heads over 8 KV heads of 128"}, 126, 16384, 128, 8, 128, 128, 131072},
    {{"llama-2-7b", "32 heads of 128, no grouping"}, 32, 4096, 32, 32, 128, 128, 4096},
    {{"llama-2-13b", "40 heads of 128, no grouping"}, 40, 5120, 40, 40, 128, 128, 4096},
    {{"mistral-7b", "32 heads over 8 KV heads of 128, window 4096"},
     32,
     4096,
     32,
     8,
     128,
     128,
     32768,
     4096,
     0},
    {{"mixtral-8x7b", "32 heads over 8 KV heads of 128"}, 32, 4096, 32, 8, 128, 128, 32768},
    {{"qwen2.5-7b", "28 heads over 4 KV heads of 128"}, 28, 3584, 28, 4, 128, 128, 32768},
    {{"qwen2.5-72b", "64 heads over 8 KV heads of 128"}, 80, 8192, 64, 8, 128, 128, 131072},
    {{"gpt-oss-120b", "64 heads over 8 KV heads of 64, every second layer a window of 128"},
     36,
     2880,
     64,
     8,
     64,
     64,
     131072,
     128,
     2},
    {{"gemma-2-9b", "16 heads over 8 KV heads of 256, every second layer a window of 4096"},
     42,
     3584,
     16,
     8,
     256,
     256,
     8192,
     4096,
     2},
    {{"deepseek-v3", "128 heads of 192, V of 128, as attention reads them"},
     61,
     7168,
     128,
     128,
     192,
     128,
     163840},
    {{"gpt-3-175b", "96 heads of 128, no grouping"}, 96, 12288, 96, 96, 128, 128, 2048},
}};

ModelShape shape_of(const ModelRow& row) {
  ModelShape model;
  model.name = row.info.name;
  model.layers = row.layers;
  model.hidden = row.hidden;
  model.max_positions = row.max_positions;
  AttentionShape shape;
  shape.heads = row.heads;
  shape.kv_heads = row.kv_heads;
  shape.head_dim = row.head_dim;
  shape.head_dim_v = row.head_dim_v;
  LayerGroup sliding{shape, {}}, full{shape, {}};
  sliding.shape.kind = LayerKind::kSliding;
  sliding.shape.window = row.window;
  for (int64_t layer = 0; layer < row.layers; ++layer) {
    const bool is_full =
        row.window == 0 || (row.full_every > 0 && layer % row.full_every == row.full_every - 1);
    (is_full ? full : sliding).layers.push_back(layer);
  }
  const auto add = [&model](LayerGroup group) {
    if (!group.layers.empty()) model.groups.push_back(std::move(group));
  };
  add(std::move(sliding));
  add(std::move(full));
  return model;
}

constexpr auto kInfos = [] {
  std::array<ShippedModel, kModels.size()> infos{};
  for (size_t i = 0; i < kModels.size(); ++i) infos[i] = kModels[i].info;
  return infos;
}();

}  // namespace

std::span<const ShippedModel> shipped_models() { return kInfos; }

bool is_shipped_model(std::string_view name) {
  for (const ShippedModel& info : kInfos) {
    if (info.name == name) return true;
  }
  return false;
}

ModelShape shipped_model(std::string_view name) {
  std::array<std::string_view, kModels.size()> names;
  for (size_t i = 0; i < kModels.size(); ++i) {
    if (kModels[i].info.name == name) return shape_of(kModels[i]);
    names[i] = kModels[i].info.name;
  }
  const std::string near = nearest_spelling(name, names.data(), static_cast<int>(names.size()));
  throw_usage(fmt::format("there is neither a file nor a model '{}'", name),
              near.empty() ? fmt::format("give a config.json, or one of {}", fmt::join(names, ", "))
                           : fmt::format("did you mean {}?", near));
}

ModelShape model_shape(const std::string& path, const std::string& name) {
  if (file_exists(path)) return read_hf_config(path).model;
  const bool is_name = name.find('/') == std::string::npos && !name.ends_with(".json");
  if (is_name) return shipped_model(name);
  return read_hf_config(path).model;
}

}  // namespace ring
