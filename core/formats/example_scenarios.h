// Scenarios that are shipped: what a newcomer sees first, and what the pages explain.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/scenario.h"

namespace ring {

struct ExampleScenario {
  std::string_view name;     ///< "8 GPUs, 128 Ki tokens".
  std::string_view summary;  ///< What it shows, in one sentence.
  std::string_view toml;
};

/// The first is the one to begin with.
std::span<const ExampleScenario> example_scenarios();
Scenario scenario_of(const ExampleScenario& example);

}  // namespace ring
