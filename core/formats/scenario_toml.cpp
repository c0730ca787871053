#include "core/formats/scenario_toml.h"

#include <fmt/format.h>

#include <climits>
#include <filesystem>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/json_text.h"
#include "core/formats/model_library.h"
#include "core/formats/toml_table.h"
#include "core/limits.h"
#include "core/mask_partition.h"

namespace ring {
namespace {

constexpr int64_t kDefaultSeqLen = 4096;
constexpr double kMostJitter = 2;  ///< exp(2) is a factor of seven.

/// The shape keys that a model gives; naming both is a contradiction.
void apply_model(const TomlTable& table, const ModelFinder& find_model, Scenario& scenario) {
  const std::optional<std::string> model = table.text("model");
  const auto layer = table.count("layer", 0, INT64_MAX);
  if (!model) {
    if (layer) throw_usage(table.where("layer") + ": \"layer\" needs a \"model\"");
    return;
  }
  for (const std::string_view key : {"heads", "kv_heads", "head_dim", "head_dim_v"}) {
    if (table.has(key)) {
      throw_usage(fmt::format("{}: \"{}\" is already given by the model", table.where(key), key),
                  "Leave out either of the two.");
    }
  }
  table.at_key("model", [&] {
    const ModelShape shape = find_model(*model);
    const LayerGroup& group = layer ? group_of_layer(shape, *layer) : dominant_group(shape);
    scenario.problem = problem_of(group.shape, shape.dtype, kDefaultSeqLen);
    scenario.model = *model;
  });
}

void apply_sizes(const TomlTable& table, Problem& problem) {
  problem.batch = table.count("batch", 1, INT64_MAX).value_or(problem.batch);
  const auto heads = table.count("heads", 1, INT64_MAX);
  problem.heads = heads.value_or(problem.heads);
  problem.kv_heads =
      table.count("kv_heads", 1, INT64_MAX).value_or(heads ? problem.heads : problem.kv_heads);
  const auto dim = table.count("head_dim", 1, INT64_MAX);
  problem.head_dim = dim.value_or(problem.head_dim);
  problem.head_dim_v =
      table.count("head_dim_v", 1, INT64_MAX).value_or(dim ? problem.head_dim : problem.head_dim_v);
}

int64_t sum_of_tokens(const std::vector<MixPart>& parts) {
  int64_t tokens = 0;
  for (const MixPart& part : parts)
    tokens = checked_add(tokens, part.all_tokens(), "the tokens of the segments");
  return tokens;
}

/// [[problem.segment]]: text, video and new documents, in the order of the sequence.
std::vector<MixPart> read_segments(const TomlTable& problem, const std::string& file) {
  std::vector<MixPart> parts;
  for (const toml::table* item : problem.tables("segment")) {
    const TomlTable table(*item, file, "[[problem.segment]]",
                          {"kind", "tokens", "frames", "before", "after", "new_document"});
    if (table.boolean("new_document").value_or(false))
      parts.push_back({MixPart::Kind::kNewDocument, 0, 1, 0, 0});
    const std::string kind = table.required("kind", table.text("kind"));
    const bool is_video = kind == "video";
    if (!is_video && kind != "text") {
      throw_usage(fmt::format("{}: segment kind \"{}\" is not known", table.where("kind"), kind),
                  "Allowed: \"text\" (causal), \"video\" (frames, full inside each).");
    }
    MixPart part;
    part.kind = is_video ? MixPart::Kind::kFrames : MixPart::Kind::kText;
    part.tokens = table.required("tokens", table.count("tokens", 0, INT64_MAX));
    for (const std::string_view key : {"frames", "before", "after"}) {
      if (is_video || !table.has(key)) continue;
      throw_usage(fmt::format("{}: \"{}\" is for video segments", table.where(key), key));
    }
    part.frames = table.count("frames", 0, INT64_MAX).value_or(1);
    part.before = table.count("before", 0, INT64_MAX).value_or(0);
    part.after = table.count("after", 0, INT64_MAX).value_or(0);
    parts.push_back(part);
  }
  return parts;
}

void read_problem(const TomlTable& table, const std::string& file, const ModelFinder& find_model,
                  Scenario& scenario) {
  Problem& problem = scenario.problem;
  problem.mask = Mask::causal(kDefaultSeqLen);
  apply_model(table, find_model, scenario);
  apply_sizes(table, problem);
  if (const auto dtype = table.text("dtype")) {
    problem.dtype = table.at_key("dtype", [&] { return parse_dtype(*dtype); });
  }
  if (const auto pass = table.text("pass")) {
    problem.pass = table.at_key("pass", [&] { return parse_pass(*pass); });
  }
  problem.scale = table.number("scale").value_or(problem.scale);
  if (const std::vector<MixPart> parts = read_segments(table, file); !parts.empty()) {
    if (table.has("mask")) {
      throw_usage(table.where("mask") + ": \"mask\" is already given by the segments",
                  "Leave out either of the two.");
    }
    problem.mask = table.at_key("segment", [&] {
      const int64_t tokens = sum_of_tokens(parts);
      return Mask::mix(table.count("seq", 0, INT64_MAX).value_or(tokens), parts);
    });
    table.at_key("", [&] { validate(problem); });
    return;
  }
  const int64_t seq = table.count("seq", 0, INT64_MAX).value_or(problem.seq_len());
  const std::string mask = table.text("mask").value_or(problem.mask.text());
  const std::string_view blamed = table.has("mask") ? "mask" : "seq";
  problem.mask = table.at_key(blamed, [&] { return Mask::parse(mask, seq); });
  table.at_key("", [&] { validate(problem); });
}

void read_tuning(const TomlTable& table, const Problem& problem, Tuning& tuning) {
  tuning.strategy = table.text("strategy").value_or(tuning.strategy);
  tuning.ranks = static_cast<int>(table.count("ranks", 1, kMostRanks).value_or(tuning.ranks));
  tuning.partition = table.text("partition").value_or(tuning.partition);
  table.at_key("partition", [&] { make_partition(tuning.partition, problem.mask, tuning.ranks); });
  tuning.block_tokens = table.count("block", 1, INT64_MAX).value_or(tuning.block_tokens);
  tuning.blocks_per_message =
      table.count("blocks_per_message", 0, INT64_MAX).value_or(tuning.blocks_per_message);
  tuning.pipeline_depth =
      static_cast<int>(table.count("depth", 1, 1 << 20).value_or(tuning.pipeline_depth));
  tuning.lanes = static_cast<int>(table.count("lanes", 1, 64).value_or(tuning.lanes));
  tuning.is_deterministic = table.boolean("deterministic").value_or(tuning.is_deterministic);
  if (const auto moves = table.text("backward")) {
    tuning.backward = table.at_key("backward", [&] { return parse_backward_moves(*moves); });
  }
  tuning.accumulation_steps =
      static_cast<int>(table.count("accumulate", 1, 1 << 16).value_or(tuning.accumulation_steps));
  tuning.optimizer_gap_ps = table.time("optimizer_gap").value_or(tuning.optimizer_gap_ps);
}

double factor_of(const TomlTable& table) {
  const double factor = table.required("factor", table.number("factor"));
  if (factor <= 0) throw_usage(table.where("factor") + ": \"factor\" must be above 0");
  return factor;
}

int index_of(const TomlTable& table, std::string_view key) {
  return static_cast<int>(table.required(key, table.count(key, 0, INT_MAX)));
}

void read_disturbances(const TomlTable& root, const std::string& file, Scenario& scenario) {
  for (const toml::table* item : root.tables("slow_rank")) {
    const TomlTable table(*item, file, "[[slow_rank]]", {"rank", "factor"});
    scenario.slow_ranks.push_back({index_of(table, "rank"), factor_of(table)});
  }
  for (const toml::table* item : root.tables("slow_link")) {
    const TomlTable table(*item, file, "[[slow_link]]", {"from", "to", "factor"});
    scenario.slow_links.push_back(
        {index_of(table, "from"), index_of(table, "to"), factor_of(table)});
  }
  for (const toml::table* item : root.tables("broken_link")) {
    const TomlTable table(*item, file, "[[broken_link]]", {"from", "to"});
    scenario.broken_links.push_back({index_of(table, "from"), index_of(table, "to")});
  }
  for (const toml::table* item : root.tables("late_start")) {
    const TomlTable table(*item, file, "[[late_start]]", {"rank", "delay"});
    scenario.late_starts.push_back(
        {index_of(table, "rank"), table.required("delay", table.time("delay"))});
  }
}

void read_what_if(const TomlTable& table, ScenarioWhatIf& what_if) {
  const auto factor = [&table](std::string_view key, double& value) {
    value = table.number(key).value_or(value);
    if (value > 0) return;
    throw_usage(fmt::format("{}: \"{}\" must be above 0", table.where(key), key));
  };
  factor("bandwidth", what_if.bandwidth);
  factor("latency", what_if.latency);
  what_if.jitter = table.number("jitter");
  if (what_if.jitter && !(*what_if.jitter >= 0 && *what_if.jitter <= kMostJitter)) {
    throw_usage(fmt::format("{}: \"jitter\" is {}, allowed is 0 to {}", table.where("jitter"),
                            *what_if.jitter, kMostJitter));
  }
}

/// A TOML basic string: as in JSON, but DEL is escaped too.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : json_quote(text)) {
    if (c == 0x7f) {
      out += "\\u007F";
    } else {
      out += c;
    }
  }
  return out;
}

/// Digits that read back to the same double, always a TOML float.
std::string exact_number(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string what_if_toml(const ScenarioWhatIf& what_if) {
  if (what_if == ScenarioWhatIf()) return {};
  std::string out = fmt::format("\n[what_if]\nbandwidth = {}\nlatency = {}\n",
                                exact_number(what_if.bandwidth), exact_number(what_if.latency));
  if (what_if.jitter) out += fmt::format("jitter = {}\n", exact_number(*what_if.jitter));
  return out;
}

std::string disturbances_toml(const Scenario& scenario) {
  std::string out;
  for (const ScenarioSlowRank& slow : scenario.slow_ranks) {
    out += fmt::format("\n[[slow_rank]]\nrank = {}\nfactor = {}\n", slow.rank,
                       exact_number(slow.factor));
  }
  for (const ScenarioSlowLink& slow : scenario.slow_links) {
    out += fmt::format("\n[[slow_link]]\nfrom = {}\nto = {}\nfactor = {}\n", slow.from, slow.to,
                       exact_number(slow.factor));
  }
  for (const ScenarioBrokenLink& broken : scenario.broken_links) {
    out += fmt::format("\n[[broken_link]]\nfrom = {}\nto = {}\n", broken.from, broken.to);
  }
  for (const ScenarioLateStart& late : scenario.late_starts) {
    out += fmt::format("\n[[late_start]]\nrank = {}\ndelay = \"{}\"\n", late.rank,
                       exact_time(late.delay_ps));
  }
  return out;
}

/// A comment must not end early.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

}  // namespace

Scenario parse_scenario(std::string_view text, const std::string& name,
                        const ModelFinder& find_model) {
  const toml::table document = parse_toml(text, name);
  const TomlTable root(document, name, "the file",
                       {"name", "machine", "noise_seed", "problem", "tuning", "what_if",
                        "slow_rank", "slow_link", "broken_link", "late_start"});
  Scenario scenario;
  scenario.name = root.text("name").value_or("");
  scenario.machine = root.text("machine").value_or("");
  scenario.noise_seed = root.count("noise_seed", 0, INT64_MAX);
  const toml::table empty;
  const toml::table* problem = root.table("problem");
  read_problem(TomlTable(problem == nullptr ? empty : *problem, name, "[problem]",
                         {"model", "layer", "batch", "heads", "kv_heads", "head_dim", "head_dim_v",
                          "seq", "mask", "segment", "dtype", "pass", "scale"}),
               name, find_model, scenario);
  const toml::table* tuning = root.table("tuning");
  read_tuning(TomlTable(tuning == nullptr ? empty : *tuning, name, "[tuning]",
                        {"strategy", "ranks", "partition", "block", "blocks_per_message", "depth",
                         "lanes", "deterministic", "backward", "accumulate", "optimizer_gap"}),
              scenario.problem, scenario.tuning);
  if (const toml::table* what_if = root.table("what_if")) {
    read_what_if(TomlTable(*what_if, name, "[what_if]", {"bandwidth", "latency", "jitter"}),
                 scenario.what_if);
  }
  read_disturbances(root, name, scenario);
  return scenario;
}

Scenario read_scenario(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return parse_scenario(read_file(path), path, [&](const std::string& model) {
    return model_shape((folder / model).string(), model);
  });
}

std::string scenario_toml(const Scenario& scenario) {
  const Problem& p = scenario.problem;
  const Tuning& t = scenario.tuning;
  std::string out =
      fmt::format("name = {}\nmachine = {}\n", quoted(scenario.name), quoted(scenario.machine));
  if (scenario.noise_seed) out += fmt::format("noise_seed = {}\n", *scenario.noise_seed);
  out += "\n[problem]\n";
  if (!scenario.model.empty()) out += fmt::format("# heads of {}\n", one_line(scenario.model));
  out += fmt::format(
      "batch = {}\nheads = {}\nkv_heads = {}\nhead_dim = {}\nhead_dim_v = {}\nseq = {}\n"
      "mask = {}\ndtype = \"{}\"\npass = \"{}\"\nscale = {}\n",
      p.batch, p.heads, p.kv_heads, p.head_dim, p.head_dim_v, p.seq_len(), quoted(p.mask.text()),
      name(p.dtype), name(p.pass), exact_number(p.scale));
  out += fmt::format(
      "\n[tuning]\nstrategy = {}\nranks = {}\npartition = {}\nblock = {}\n"
      "blocks_per_message = {}\ndepth = {}\nlanes = {}\ndeterministic = {}\n"
      "backward = \"{}\"\naccumulate = {}\noptimizer_gap = \"{}\"\n",
      quoted(t.strategy), t.ranks, quoted(t.partition), t.block_tokens, t.blocks_per_message,
      t.pipeline_depth, t.lanes, t.is_deterministic, name(t.backward), t.accumulation_steps,
      exact_time(t.optimizer_gap_ps));
  return out + what_if_toml(scenario.what_if) + disturbances_toml(scenario);
}

}  // namespace ring
