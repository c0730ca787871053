#include "core/formats/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

HfConfig config_of(const std::string& file) {
  return read_hf_config(data_path("hf-config/" + file));
}

/// heads / KV heads / QK dim / V dim.
std::vector<int64_t> numbers(const AttentionShape& shape) {
  return {shape.heads, shape.kv_heads, shape.head_dim, shape.head_dim_v};
}

TEST(HfConfig, GroupedHeadsWithDerivedDim) {
  const HfConfig config = config_of("gqa-derived-dim.json");
  EXPECT_EQ(config.model.name, "HeronForCausalLM");
  EXPECT_EQ(config.model.layers, 11);
  EXPECT_EQ(config.model.hidden, 1536);
  EXPECT_EQ(config.model.max_positions, 9000);
  EXPECT_EQ(config.model.dtype, DType::kF16);
  ASSERT_EQ(config.model.groups.size(), 1U);
  const AttentionShape& shape = config.model.groups[0].shape;
  EXPECT_THAT(numbers(shape), ElementsAre(24, 3, 64, 64));
  EXPECT_EQ(shape.kv_bytes_per_token(DType::kBF16), 3 * (64 + 64) * 2);
  EXPECT_TRUE(has_finding(config.findings, FindingKind::kAssumed, "derived"));
}

TEST(HfConfig, StatedDimIsNotDerivedAndNullWindowIsFull) {
  const HfConfig config = config_of("stated-dim-crlf.json");
  EXPECT_THAT(numbers(config.model.groups[0].shape), ElementsAre(50, 10, 96, 96));
  EXPECT_EQ(config.model.groups[0].shape.kind, LayerKind::kFull);
  EXPECT_EQ(config.model.groups[0].layers.size(), 7U);
  EXPECT_TRUE(has_finding(config.findings, FindingKind::kFound, "head dim is stated"));
}

TEST(HfConfig, LatentAttention) {
  const AttentionShape shape = config_of("mla.json").model.groups[0].shape;
  EXPECT_THAT(numbers(shape), ElementsAre(40, 40, 128, 80));
  EXPECT_EQ(shape.latent_dim, 352);
  EXPECT_EQ(shape.latent_bytes_per_token(DType::kBF16), 704);
  EXPECT_EQ(shape.kv_bytes_per_token(DType::kBF16), 40 * (128 + 80) * 2);
}

TEST(HfConfig, NestedModelWithTwoHeadDims) {
  const ModelShape model = config_of("nested-two-head-dims.json").model;
  EXPECT_EQ(model.hidden, 1280);
  ASSERT_EQ(model.groups.size(), 2U);
  const LayerGroup &sliding = model.groups[0], &full = model.groups[1];
  EXPECT_EQ(sliding.shape.kind, LayerKind::kSliding);
  EXPECT_EQ(sliding.shape.window, 700);
  EXPECT_FALSE(sliding.shape.is_value_key);
  EXPECT_THAT(numbers(sliding.shape), ElementsAre(12, 6, 96, 96));
  EXPECT_THAT(sliding.layers, ElementsAre(0, 1, 3, 4));
  EXPECT_EQ(full.shape.kind, LayerKind::kFull);
  EXPECT_THAT(numbers(full.shape), ElementsAre(12, 2, 192, 192));
  EXPECT_TRUE(full.shape.is_value_key);
  EXPECT_EQ(full.shape.kv_bytes_per_token(DType::kBF16), 2 * 192 * 2);
  EXPECT_THAT(full.layers, ElementsAre(2, 5));
  EXPECT_EQ(&dominant_group(model), &full);
  EXPECT_EQ(&group_of_layer(model, 4), &sliding);
  EXPECT_THAT(error_of([&] { group_of_layer(model, 6); }), HasSubstr("has no layer 6"));
}

TEST(HfConfig, ChunkedLayersAreSaidToBeAssumed) {
  const HfConfig config = config_of("nested-chunked.json");
  ASSERT_EQ(config.model.groups.size(), 2U);
  EXPECT_EQ(config.model.groups[0].shape.kind, LayerKind::kChunked);
  EXPECT_EQ(config.model.groups[0].shape.window, 3000);
  EXPECT_THAT(config.model.groups[1].layers, ElementsAre(3, 7));
  EXPECT_TRUE(has_finding(config.findings, FindingKind::kAssumed, "which layers are chunked"));
}

TEST(HfConfig, ForeignFilesAreRefusedNamingTheMissingKeys) {
  EXPECT_THAT(error_of([] { config_of("foreign-keys.json"); }),
              AllOf(HasSubstr("foreign-keys.json: not a Hugging Face config: hidden_size missing"),
                    HasSubstr("config.json")));
  EXPECT_THAT(error_of([] { parse_hf_config("{}", "f"); }),
              HasSubstr("num_attention_heads, num_hidden_layers, hidden_size missing"));
  EXPECT_THAT(error_of([] { parse_hf_config("[1]", "f"); }), HasSubstr("not a Hugging Face"));
  EXPECT_THAT(error_of([] { parse_hf_config("{\"a\":", "f"); }), HasSubstr("f:1:"));
}

TEST(HfConfig, WithoutKvHeadsAndWithAWindowEverywhere) {
  const HfConfig config = config_of("leading-blanks-window.json");
  ASSERT_EQ(config.model.groups.size(), 1U);
  EXPECT_THAT(numbers(config.model.groups[0].shape), ElementsAre(6, 6, 16, 16));
  EXPECT_EQ(config.model.groups[0].shape.window, 50);
  EXPECT_THAT(config.model.groups[0].layers, ElementsAre(0, 1, 2));
  EXPECT_TRUE(has_finding(config.findings, FindingKind::kAssumed, "as many KV heads"));
  EXPECT_TRUE(has_finding(config.findings, FindingKind::kAssumed, "dtype"));
}

TEST(HfConfig, HybridLayersAndPythonNumbers) {
  const ModelShape model = config_of("hybrid-python-numbers.json").model;
  ASSERT_EQ(model.groups.size(), 2U);
  EXPECT_EQ(model.groups[0].shape.kind, LayerKind::kOther);
  EXPECT_THAT(model.groups[1].layers, ElementsAre(2, 6));
}

TEST(HfConfig, ListsWithOneNumberPerLayer) {
  const ModelShape model = config_of("per-layer-lists.json").model;
  ASSERT_EQ(model.groups.size(), 3U);
  EXPECT_THAT(numbers(model.groups[2].shape), ElementsAre(20, 5, 64, 64));
  EXPECT_EQ(model.dtype, DType::kF32);
}

/// A config of one attention kind, from a few keys.
HfConfig with_keys(const std::string& keys) {
  return parse_hf_config(R"({"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
      "num_hidden_layers": 8)" +
                             (keys.empty() ? "" : ", " + keys) + "}",
                         "f");
}

std::vector<int64_t> full_layers(const std::string& keys) {
  for (const LayerGroup& group : with_keys(keys).model.groups) {
    if (group.shape.kind == LayerKind::kFull) return group.layers;
  }
  return {};
}

TEST(HfConfig, LayerPatterns) {
  EXPECT_THAT(full_layers(R"("sliding_window": 9, "sliding_window_pattern": 4)"),
              ElementsAre(3, 7));
  EXPECT_THAT(full_layers(R"("sliding_window": 9, "model_type": "gemma2")"),
              ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(full_layers(R"("sliding_window": 9, "use_sliding_window": true,
                             "max_window_layers": 3)"),
              ElementsAre(0, 1, 2));
  EXPECT_EQ(full_layers(R"("sliding_window": 9, "use_sliding_window": false)").size(), 8U);
  EXPECT_TRUE(full_layers(R"("sliding_window": 9)").empty());
  EXPECT_THAT(full_layers(R"("full_attention_interval": 4)"), ElementsAre(3, 7));
  EXPECT_THAT(full_layers(R"("hybrid_override_pattern": "M-M*M-M*")"), ElementsAre(3, 7));
  EXPECT_THAT(full_layers(R"("full_attn_idxs": [2, 5])"), ElementsAre(2, 5));
  EXPECT_THAT(full_layers(R"("attn_type_list": [0,0,0,1,0,0,0,1])"), ElementsAre(3, 7));
  EXPECT_THAT(full_layers(R"("attention_chunk_size": 9, "no_rope_layers": [1,0,1,1,1,1,0,1])"),
              ElementsAre(1, 6));
}

TEST(HfConfig, ContradictionsAreRefused) {
  const auto refusal = [](const std::string& keys) { return error_of([&] { with_keys(keys); }); };
  EXPECT_THAT(refusal(R"("layer_types": ["full_attention"])"),
              HasSubstr("a list of 1 for 8 layers"));
  EXPECT_THAT(refusal(R"("layer_types": ["ful_attention","a","a","a","a","a","a","a"])"),
              AllOf(HasSubstr("f: /layer_types/0"), HasSubstr("Did you mean full_attention?")));
  EXPECT_THAT(refusal(R"("layers_block_type": ["sliding_attention","a","a","a","a","a","a","a"])"),
              HasSubstr("\"sliding_window\" is missing"));
  EXPECT_THAT(refusal(R"("head_dim": -3)"), HasSubstr("/head_dim: -3 is out of range"));
  EXPECT_THAT(refusal(R"("head_dim": "64")"), HasSubstr("/head_dim: expected a whole number"));
  EXPECT_THAT(refusal(R"("kv_lora_rank": 64)"), HasSubstr("qk_rope_head_dim"));
  EXPECT_THAT(error_of([] {
                parse_hf_config(R"({"hidden_size": 64, "num_attention_heads": 6,
                                    "num_hidden_layers": 1, "num_key_value_heads": 2})",
                                "f");
              }),
              HasSubstr("6 heads do not divide hidden size 64"));
  EXPECT_THAT(error_of([] {
                parse_hf_config(R"({"hidden_size": 64, "num_attention_heads": 4,
                                    "num_hidden_layers": 1, "num_key_value_heads": 3})",
                                "f");
              }),
              HasSubstr("3 KV heads do not divide 4 query heads"));
}

RC_GTEST_PROP(HfConfig, AnyGroupedShapeComesBack, ()) {
  const auto kv = *rc::gen::inRange<int64_t>(1, 20), ratio = *rc::gen::inRange<int64_t>(1, 20);
  const auto dim = *rc::gen::inRange<int64_t>(1, 300), layers = *rc::gen::inRange<int64_t>(1, 100);
  const std::string text = "{\"num_attention_heads\": " + std::to_string(kv * ratio) +
                           ", \"num_key_value_heads\": " + std::to_string(kv) +
                           ", \"num_hidden_layers\": " + std::to_string(layers) +
                           ", \"hidden_size\": " + std::to_string(kv * ratio * dim) + "}";
  const ModelShape model = parse_hf_config(text, "f").model;
  RC_ASSERT(model.groups.size() == 1U);
  RC_ASSERT(static_cast<int64_t>(model.groups[0].layers.size()) == layers);
  RC_ASSERT(numbers(model.groups[0].shape) == std::vector<int64_t>({kv * ratio, kv, dim, dim}));
}

TEST(HfConfig, ProblemsOfLayers) {
  const ModelShape model = config_of("nested-two-head-dims.json").model;
  const Problem problem = problem_of(model.groups[0].shape, model.dtype, 4096);
  EXPECT_EQ(problem.mask.text(), Mask::sliding_window(4096, 700).text());
  EXPECT_EQ(problem.heads, 12);
  EXPECT_EQ(problem_of(model.groups[1].shape, model.dtype, 4096).mask.kind(), "causal");
}

}  // namespace
}  // namespace ring
