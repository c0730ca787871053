#include "core/formats/example_scenarios.h"

#include <array>

#include "core/formats/model_library.h"
#include "core/formats/scenario_toml.h"

namespace ring {

namespace {

constexpr std::array<ExampleScenario, 5> kExamples{{
    {"2 nodes of 4, one NIC each", "a slow link in the ring: which hop does not hide?",
     R"(name = "2 nodes of 4, one NIC each"
machine = "cluster:nodes=2,gpus=4,nic-bandwidth=12.5GB/s"
[problem]
model = "llama-3-8b"
seq = "64Ki"
[tuning]
ranks = 8
block = "1Ki"
blocks_per_message = 1
depth = 2
)"},
    {"8 A100, 32 Ki tokens", "one node: hops over NVLink against short attention",
     R"(name = "8 A100, 32 Ki tokens"
machine = "dgx-a100"
[problem]
model = "llama-3-8b"
seq = "32Ki"
[tuning]
ranks = 8
block = "1Ki"
depth = 2
)"},
    {"A late rank", "rank 3 computes 1.6 times as long as the others",
     R"(name = "A late rank"
machine = "dgx-a100"
[problem]
model = "llama-3-8b"
seq = "64Ki"
[tuning]
ranks = 8
block = "2Ki"
[[slow_rank]]
rank = 3
factor = 1.6
)"},
    {"8 H100, 1 Mi tokens", "a long context: attention hides every hop",
     R"(name = "8 H100, 1 Mi tokens"
machine = "hgx-h100"
[problem]
model = "llama-3-8b"
seq = "1Mi"
[tuning]
ranks = 8
block = "4Ki"
depth = 2
)"},
    {"This machine, 4 ranks", "small enough to be measured on the cores at hand",
     R"(name = "This machine, 4 ranks"
[problem]
heads = 8
head_dim = 64
seq = "4Ki"
dtype = "fp32"
[tuning]
ranks = 4
block = 256
depth = 2
)"},
}};

}  // namespace

std::span<const ExampleScenario> example_scenarios() { return kExamples; }

Scenario scenario_of(const ExampleScenario& example) {
  return parse_scenario(example.toml, std::string(example.name), shipped_model);
}

}  // namespace ring
