#include "core/formats/scenario_toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/formats/hf_config.h"
#include "tests/core/formats_random.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ModelShape no_model(const std::string& model) { throw_usage("no model " + model); }

Scenario scenario_of(const std::string& text) { return parse_scenario(text, "s.toml", no_model); }

std::string refusal(const std::string& text) {
  return error_of([&] { scenario_of(text); });
}

TEST(ScenarioToml, ReadsWhatIsGivenAndKeepsDefaults) {
  const Scenario scenario = scenario_of(R"(
name = "long"
machine = "two-nodes.json"
noise_seed = 7
[problem]
heads = 32
kv_heads = 8
seq = "128Ki"
mask = "window:4096"
dtype = "bf16"
[tuning]
ranks = 8
block = "4Ki"
depth = 4
[[slow_rank]]
rank = 3
factor = 1.5
[[late_start]]
rank = 1
delay = "3us"
)");
  EXPECT_EQ(scenario.machine, "two-nodes.json");
  EXPECT_EQ(scenario.noise_seed, 7);
  EXPECT_EQ(scenario.problem.seq_len(), 131072);
  EXPECT_EQ(scenario.problem.kv_heads, 8);
  EXPECT_EQ(scenario.problem.mask.text(), "window:4096");
  EXPECT_EQ(scenario.tuning.block_tokens, 4096);
  EXPECT_EQ(scenario.tuning.pipeline_depth, 4);
  EXPECT_EQ(scenario.tuning.strategy, Tuning().strategy);
  ASSERT_EQ(scenario.slow_ranks.size(), 1U);
  EXPECT_EQ(scenario.slow_ranks[0].factor, 1.5);
  ASSERT_EQ(scenario.late_starts.size(), 1U);
  EXPECT_EQ(scenario.late_starts[0].delay_ps, 3'000'000);
}

TEST(ScenarioToml, EmptyFileIsTheDefault) {
  const Scenario scenario = scenario_of("");
  EXPECT_EQ(scenario.problem.heads, Problem().heads);
  EXPECT_EQ(scenario.problem.seq_len(), 4096);
  EXPECT_EQ(scenario.tuning.ranks, Tuning().ranks);
}

TEST(ScenarioToml, NamesFileAndLine) {
  EXPECT_THAT(refusal("name = \"x\"\n[tuning]\ndepht = 2\n"),
              HasSubstr("s.toml:3: unknown key \"depht\" in [tuning] | Did you mean \"depth\"?"));
  EXPECT_THAT(refusal("[problm]\n"), HasSubstr("s.toml:1: unknown key \"problm\""));
  EXPECT_THAT(refusal("a = \n"), HasSubstr("s.toml:1:"));
  EXPECT_THAT(refusal("[tuning]\nranks = 2\nranks = 3\n"), HasSubstr("s.toml:3:"));
  EXPECT_THAT(refusal("[tuning]\nranks = \"two\"\n"), HasSubstr("s.toml:2:"));
  EXPECT_THAT(refusal("[tuning]\nranks = 2.0\n"), HasSubstr("s.toml:2: \"ranks\" must be a whole"));
  EXPECT_THAT(refusal("[tuning]\nranks = 0\n"), HasSubstr("\"ranks\" is 0, allowed is 1 to"));
  EXPECT_THAT(refusal("[tuning]\nblock = -5\n"), HasSubstr("s.toml:2: \"block\" is -5"));
  EXPECT_THAT(refusal("[tuning]\nstrategy = 1\n"), HasSubstr("must be a string, not integer"));
  EXPECT_THAT(refusal("[tuning]\npartition = \"zigzg\"\n"), HasSubstr("s.toml:2:"));
  EXPECT_THAT(refusal("[problem]\n\nmask = \"casual\"\n"), HasSubstr("s.toml:3:"));
  EXPECT_THAT(refusal("[problem]\ndtype = \"fp8\"\n"), HasSubstr("s.toml:2:"));
  EXPECT_THAT(refusal("[problem]\nheads = 8\nkv_heads = 3\n"), HasSubstr("s.toml:1:"));
  EXPECT_THAT(refusal("[problem]\nscale = inf\n"), HasSubstr("\"scale\" is not finite"));
  EXPECT_THAT(refusal("problem = 3\n"), HasSubstr("\"problem\" must be a table"));
}

TEST(ScenarioToml, SegmentsOfTextAndVideo) {
  const std::string segments = R"(
[[problem.segment]]
kind = "text"
tokens = 100
[[problem.segment]]
kind = "video"
frames = 16
tokens = 64
before = 1
after = 1
[[problem.segment]]
kind = "text"
tokens = 20
new_document = true
)";
  const Scenario scenario = scenario_of("[problem]\nheads = 4\n" + segments);
  EXPECT_EQ(scenario.problem.seq_len(), 100 + 16 * 66 + 20);
  EXPECT_EQ(scenario.problem.mask.text(), "mix:text=100,frames=16x64+1+1,new,text=20");
  const Scenario again = scenario_of(scenario_toml(scenario));
  EXPECT_EQ(again.problem.mask.text(), scenario.problem.mask.text());
  EXPECT_EQ(again.problem.seq_len(), scenario.problem.seq_len());
  EXPECT_THAT(refusal("[problem]\nmask = \"full\"\n" + segments),
              HasSubstr("\"mask\" is already given by the segments"));
  EXPECT_THAT(refusal("[problem]\nseq = 9\n" + segments), HasSubstr("have 1176 tokens"));
  EXPECT_THAT(refusal("[[problem.segment]]\nkind = \"audio\"\ntokens = 3\n"),
              HasSubstr("s.toml:2: segment kind \"audio\" is not known"));
  EXPECT_THAT(refusal("[[problem.segment]]\nkind = \"text\"\ntokens = 3\nframes = 2\n"),
              HasSubstr("s.toml:4: \"frames\" is for video segments"));
  EXPECT_THAT(refusal("[[problem.segment]]\nkind = \"text\"\n"),
              HasSubstr("\"tokens\" is missing"));
}

TEST(ScenarioToml, EveryMaskReadsBack) {
  for (const char* mask :
       {"full", "causal", "window:9", "chunked:7", "prefix:5", "decode:2", "docs:0,0,1,1,20,40",
        "docs-full:0,1,40", "groups:0,8,8,40", "mix:text=8,frames=4x8"}) {
    const Scenario scenario =
        scenario_of(std::string("[problem]\nseq = 40\nmask = \"") + mask + "\"\n");
    EXPECT_EQ(scenario.problem.mask.text(), mask);
    EXPECT_EQ(scenario_of(scenario_toml(scenario)).problem.mask.text(), mask);
  }
}

TEST(ScenarioToml, TimesNeedUnits) {
  EXPECT_THAT(refusal("[[late_start]]\nrank = 0\ndelay = 3\n"),
              HasSubstr("s.toml:3: \"delay\" must be a time with its unit"));
  EXPECT_THAT(refusal("[[late_start]]\nrank = 0\ndelay = \"3\"\n"), HasSubstr("s.toml:3:"));
  EXPECT_THAT(refusal("[[late_start]]\nrank = 0\n"), HasSubstr("\"delay\" is missing"));
  EXPECT_THAT(refusal("[[slow_rank]]\nrank = 0\nfactor = 0\n"), HasSubstr("must be above 0"));
}

TEST(ScenarioToml, ModelGivesTheHeads) {
  const TemporaryFolder folder;
  std::filesystem::copy(data_path("hf-config/nested-two-head-dims.json"), folder / "model.json");
  put(folder / "s.toml", "[problem]\nmodel = \"model.json\"\nseq = 1000\n");
  const Scenario scenario = read_scenario(folder / "s.toml");
  EXPECT_EQ(scenario.problem.heads, 12);
  EXPECT_EQ(scenario.problem.head_dim, 192);
  EXPECT_EQ(scenario.problem.mask.text(), "causal");
  EXPECT_EQ(scenario.problem.seq_len(), 1000);
  put(folder / "s.toml", "[problem]\nmodel = \"model.json\"\nlayer = 3\nseq = 1000\n");
  EXPECT_EQ(read_scenario(folder / "s.toml").problem.mask.text(), "window:700");
  put(folder / "s.toml", "[problem]\nmodel = \"model.json\"\nheads = 3\n");
  EXPECT_THAT(error_of([&] { read_scenario(folder / "s.toml"); }),
              HasSubstr("s.toml:3: \"heads\" is already given by the model"));
  put(folder / "s.toml", "[problem]\nmodel = \"other.json\"\n");
  EXPECT_THAT(error_of([&] { read_scenario(folder / "s.toml"); }),
              AllOf(HasSubstr("s.toml:2:"), HasSubstr("other.json")));
  EXPECT_THAT(refusal("[problem]\nlayer = 3\n"), HasSubstr("\"layer\" needs a \"model\""));
}

TEST(ScenarioToml, TheExampleOfTheDocumentationIsRead) {
  const std::string page = get(std::string(RING_SOURCE_DIR) + "/docs/formats.md");
  const size_t begin = page.find("```toml\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string example = page.substr(begin + 8, page.find("```", begin + 8) - begin - 8);
  const Scenario scenario = parse_scenario(example, "docs/formats.md", [](const std::string&) {
    return read_hf_config(data_path("hf-config/nested-two-head-dims.json")).model;
  });
  EXPECT_EQ(scenario.problem.heads, 12);
  EXPECT_EQ(scenario.problem.head_dim, 96) << "layer 3 slides";
  EXPECT_EQ(scenario.tuning.ranks, 8);
  EXPECT_EQ(scenario.late_starts.size(), 1U);
  const size_t second = page.find("```toml\n", begin + 8);
  ASSERT_NE(second, std::string::npos);
  const std::string segments = page.substr(second + 8, page.find("```", second + 8) - second - 8);
  EXPECT_EQ(scenario_of(segments).problem.mask.text(),
            "mix:text=512,frames=16x256+1+1,new,text=100");
  EXPECT_NE(page.find("mix:text=512,frames=16x256+1+1,new,text=100"), std::string::npos);
}

RC_GTEST_PROP(ScenarioToml, WritingBackReproducesIt, (uint64_t seed)) {
  RandomFiles random(seed);
  Scenario scenario;
  scenario.name = random.text();
  scenario.machine = random.text();
  scenario.model = random.text();
  if (const RunFile run = random.run(); run.identity) {
    scenario.problem = run.identity->problem;
    scenario.tuning = run.identity->tuning;
  }
  scenario.tuning.is_deterministic = random.coin();
  scenario.tuning.backward = static_cast<BackwardMoves>(random.whole(0, 2));
  scenario.tuning.accumulation_steps = static_cast<int>(random.whole(1, 9));
  scenario.tuning.optimizer_gap_ps = random.whole(0, 1'000'000'000);
  if (random.coin()) scenario.noise_seed = random.whole(0, INT64_MAX);
  scenario.slow_ranks.push_back({3, random.amount()});
  scenario.slow_links.push_back({0, 1, random.amount()});
  scenario.broken_links.push_back({2, 3});
  scenario.late_starts.push_back({1, random.whole(0, INT64_MAX / 2)});
  const std::string text = scenario_toml(scenario);
  const Scenario read = scenario_of(text);
  Scenario same = read;
  same.model = scenario.model;  // A comment for people, not read.
  RC_ASSERT(scenario_toml(same) == text);
  RC_ASSERT(read.name == scenario.name);
  RC_ASSERT(read.problem.scale == scenario.problem.scale);
  RC_ASSERT(read.problem.mask.text() == scenario.problem.mask.text());
  RC_ASSERT(read.tuning.block_tokens == scenario.tuning.block_tokens);
  RC_ASSERT(read.tuning.backward == scenario.tuning.backward);
  RC_ASSERT(read.tuning.accumulation_steps == scenario.tuning.accumulation_steps);
  RC_ASSERT(read.tuning.optimizer_gap_ps == scenario.tuning.optimizer_gap_ps);
  RC_ASSERT(read.noise_seed == scenario.noise_seed);
  RC_ASSERT(read.late_starts[0].delay_ps == scenario.late_starts[0].delay_ps);
  RC_ASSERT(read.slow_links[0].factor == scenario.slow_links[0].factor);
}

}  // namespace
}  // namespace ring
