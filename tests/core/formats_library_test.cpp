#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "core/formats/model_library.h"
#include "core/formats/scenario_toml.h"
#include "core/machine_presets.h"
#include "core/machine_scaling.h"
#include "core/strategy.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::HasSubstr;

TEST(ModelLibrary, EveryModelMakesAProblem) {
  std::set<std::string_view> names;
  for (const ShippedModel& info : shipped_models()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    const ModelShape model = shipped_model(info.name);
    Problem problem = problem_of(dominant_group(model).shape, model.dtype, 1024);
    EXPECT_NO_THROW(validate(problem)) << info.name;
    int64_t layers = 0;
    for (const LayerGroup& group : model.groups) layers += std::ssize(group.layers);
    EXPECT_EQ(layers, model.layers) << info.name;
    EXPECT_THAT(std::string(info.summary), HasSubstr(std::to_string(problem.heads) + " heads"));
  }
}

TEST(ModelLibrary, AlternatingLayersAreHalfAndHalf) {
  const ModelShape model = shipped_model("gemma-2-9b");
  EXPECT_EQ(group_of_layer(model, 0).shape.kind, LayerKind::kSliding);
  EXPECT_EQ(group_of_layer(model, 1).shape.kind, LayerKind::kFull);
  EXPECT_EQ(model.groups[0].layers.size(), model.groups[1].layers.size());
}

TEST(ModelLibrary, NamesTheNearest) {
  EXPECT_THAT(error_of([] { shipped_model("lama-3-8b"); }), HasSubstr("llama-3-8b"));
}

TEST(ScenarioToml, ModelsAreKnownByName) {
  const Scenario scenario = parse_scenario("[problem]\nmodel = \"llama-3-70b\"\n", "s.toml",
                                           [](const std::string& m) { return shipped_model(m); });
  EXPECT_EQ(scenario.problem.heads, 64);
  EXPECT_EQ(scenario.problem.kv_heads, 8);
  EXPECT_EQ(scenario.problem.dtype, DType::kBF16);
}

TEST(ScenarioToml, WhatIfIsReadAndWritten) {
  const auto none = [](const std::string&) { return ModelShape(); };
  const Scenario scenario =
      parse_scenario("[what_if]\nbandwidth = 2.0\nlatency = 0.5\njitter = 0.1\n", "s.toml", none);
  EXPECT_EQ(scenario.what_if, (ScenarioWhatIf{2, 0.5, 0.1}));
  EXPECT_EQ(parse_scenario(scenario_toml(scenario), "t.toml", none).what_if, scenario.what_if);
  EXPECT_THAT(scenario_toml(Scenario()), testing::Not(HasSubstr("what_if")));
  const auto refused = [&](const std::string& line) {
    return error_of([&] { parse_scenario("[what_if]\n" + line + "\n", "s.toml", none); });
  };
  EXPECT_THAT(refused("bandwidth = 0.0"), HasSubstr("s.toml:2: \"bandwidth\" must be above 0"));
  EXPECT_THAT(refused("jitter = -1.0"), HasSubstr("\"jitter\" is -1"));
}

TEST(MachineScaling, ScalesWhatCarriesMessages) {
  Machine machine = machine_preset("ring:ranks=4,bandwidth=10GB/s,latency=4us");
  apply({2, 0.5, 0.25}, machine);
  for (const Link& link : machine.topology.links()) {
    EXPECT_EQ(link.bytes_per_s, 20e9);
    EXPECT_EQ(link.latency_ps, 2'000'000);
  }
  EXPECT_EQ(machine.noise.per_op, 0.25);
  Machine copying;
  copying.transfer = TransferKind::kReceiverCopy;
  copying.copy = {1e-6, 8e9};
  copying.memory_bytes_per_s = 20e9;
  apply({2, 3, std::nullopt}, copying);
  EXPECT_EQ(copying.copy.bytes_per_s, 16e9);
  EXPECT_EQ(copying.memory_bytes_per_s, 40e9);
  EXPECT_DOUBLE_EQ(copying.copy.start_s, 3e-6);
}

TEST(ExampleScenarios, AllAreReadAndPlanned) {
  ASSERT_GE(example_scenarios().size(), 3U);
  for (const ExampleScenario& example : example_scenarios()) {
    const Scenario scenario = scenario_of(example);
    EXPECT_EQ(scenario.name, example.name);
    EXPECT_TRUE(scenario.machine.empty() || is_machine_preset(scenario.machine)) << example.name;
    EXPECT_NO_THROW(plan(scenario.problem, scenario.tuning)) << example.name;
  }
}

}  // namespace
}  // namespace ring
