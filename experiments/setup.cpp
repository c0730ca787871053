#include "experiments/setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/formats/model_library.h"
#include "core/formats/scenario_toml.h"
#include "core/library.h"
#include "core/limits.h"
#include "core/machine_presets.h"
#include "core/model_shape.h"
#include "core/paths.h"
#include "kernels/topology_choice.h"

namespace ring {

namespace {

constexpr int64_t kDefaultSeqLen = 4096;

/// A file, or a scenario of the library by its name.
std::string scenario_path(const std::string& text) {
  const std::string known =
      file_exists(text) ? std::string() : find_in_library(LibraryKind::kScenarios, text);
  return known.empty() ? text : known;
}

}  // namespace

void SetupOptions::declare_problem(VerbOptions& options) {
  options.heading("Problem");
  options.text("--model", model_, "FILE",
               "Take heads and head dims from a Hugging Face config.json,\n"
               "or from a model known by name, such as llama-3-8b");
  options.count("--layer", layer_, "Layer of that model [the kind that costs most]", {0});
  options.count("--heads", heads_, "Query heads [8]");
  options.count("--kv-heads", kv_heads_, "KV heads, a divisor of the heads [as --heads]");
  options.count("--head-dim", head_dim_, "Head dim of Q and K, up to 256 [128]");
  options.count("--head-dim-v", head_dim_v_, "Head dim of V [as --head-dim]");
  options.count("--seq", seq_, "Sequence length in tokens [4096]");
  options.count("--batch", batch_, "Batch elements [1]");
  options.text("--dtype", dtype_, "TYPE", "fp32, bf16 or fp16 [fp32]");
  options.text("--mask", mask_, "MASK",
               "full, causal, window:W, chunked:C, prefix:P, docs:0,9,17, decode:N,\n"
               "groups:0,9,17 or mix:text=N,frames=KxN,... [causal]");
  options.text("--pass", pass_, "PASS", "forward, forward+backward or backward [forward]");
}

void SetupOptions::declare_tuning(VerbOptions& options) {
  options.heading("Tuning");
  options.text("--strategy", strategy_, "NAME", "See ringscope strategies [pass-kv]");
  declare_tuning_of_all(options);
}

void SetupOptions::declare_tuning_of_all(VerbOptions& options) {
  options.heading("Tuning");
  options.count("--ranks", ranks_, "Ranks in the ring [2]", {1, kMostRanks});
  options.text("--partition", partition_, "HOW",
               "contiguous, shorter-last, zigzag, doc-zigzag, striped:W,\n"
               "balanced, balanced:SPEEDS or uneven:A,B,... [zigzag]");
  options.count("--block", block_, "KV tokens that one attention op works on [1024]");
  options.count("--blocks-per-message", blocks_per_message_,
                "Blocks that travel together, 0 for the whole shard [0]", {0});
  options.count("--depth", depth_, "Receive buffers of a rank [2]", {1, 1 << 20});
  options.count("--lanes", lanes_, "Send and receive lanes of a rank [1]", {1, 64});
  options.flag("--deterministic", is_deterministic_,
               "Merge in global order: the result does not depend on the ring");
  options.text("--backward", backward_, "SIDE",
               "What travels in the backward pass: kv (K and V, with dK and dV),\n"
               "q (Q and dO, with dQ), or auto for what is fewer bytes [auto]");
  options.count("--accumulate", accumulate_,
                "Times the pass is repeated, its gradients summed in fp32 [1]", {1, 1 << 16});
  options.time("--optimizer-gap", optimizer_gap_ps_,
               "Computation of other kind after those, on every rank [0s]");
}

void SetupOptions::declare_machine(VerbOptions& options) {
  options.heading("Machine");
  options.text("--machine", machine_, "FILE",
               "Machine profile, a machine such as h100-sxm-8 (ringscope machines lists\n"
               "them), or a preset such as dgx-a100:nodes=2\n"
               "[the profile that ringscope calibrate left]");
  options.text("--topology", topology_, "FILE",
               "Take the links from nvidia-smi topo -m, a topology file of NCCL, or TOML, perhaps\n"
               "with keys: topo.txt:nodes=2,links=LOG (ringscope place --help); costs of\n"
               "computation are those of --machine, else of the GPU that the file names");
}

void SetupOptions::declare_scenario(VerbOptions& options) {
  options.heading("Scenario");
  options.text("--scenario", scenario_, "FILE", "Read all of this from a TOML file; options win");
  options.flag("--print-config", is_config_wanted_,
               "Print the scenario file that reproduces this command, and stop");
}

bool SetupOptions::has_problem() const {
  return model_ || layer_ || mask_ || dtype_ || pass_ || batch_ || heads_ || kv_heads_ ||
         head_dim_ || head_dim_v_ || seq_;
}

bool SetupOptions::is_any_given() const {
  return is_program_given() || machine_ || topology_ || is_config_wanted_;
}

bool SetupOptions::is_program_given() const {
  const bool has_tuning = strategy_ || partition_ || ranks_ || block_ || blocks_per_message_ ||
                          depth_ || lanes_ || is_deterministic_ || backward_ || accumulate_ ||
                          optimizer_gap_ps_;
  return has_problem() || has_tuning || scenario_;
}

void SetupOptions::refuse_unused(const Tuning& tuning) const {
  const std::string_view strategy =
      std::string_view(tuning.strategy).substr(0, tuning.strategy.find(':'));
  const auto is_one_of = [strategy](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), strategy) != names.end();
  };
  const auto refuse_if = [&](bool is_unused, const auto& option, std::string_view name) {
    if (!option || !is_unused) return;
    throw_usage(fmt::format("strategy {} has no use for {}", strategy, name), "leave it out");
  };
  const bool is_alone = is_one_of({"local", "flash", "chunked", "naive"});
  const bool has_no_ring = is_alone || is_one_of({"ulysses", "tensor-parallel"});
  refuse_if(is_one_of({"flash", "naive"}), block_, "--block");
  refuse_if(has_no_ring || is_one_of({"tree-decode"}), blocks_per_message_, "--blocks-per-message");
  refuse_if(has_no_ring, depth_, "--depth");
  refuse_if(is_alone, lanes_, "--lanes");
}

void SetupOptions::apply_model(Scenario& scenario) const {
  if (!model_) {
    if (layer_) throw_usage("--layer needs --model");
    return;
  }
  if (heads_ || kv_heads_ || head_dim_ || head_dim_v_) {
    throw_usage("--model already gives heads and head dims",
                "leave out --model, or --heads, --kv-heads, --head-dim and --head-dim-v");
  }
  const ModelShape model = model_shape(*model_, *model_);
  const LayerGroup& group = layer_ ? group_of_layer(model, *layer_) : dominant_group(model);
  scenario.problem =
      problem_of(group.shape, model.dtype, seq_.value_or(scenario.problem.seq_len()));
  scenario.model = *model_;
}

void SetupOptions::apply_problem(Problem& problem) const {
  problem.batch = batch_.value_or(problem.batch);
  problem.heads = heads_.value_or(problem.heads);
  problem.kv_heads = kv_heads_.value_or(heads_ ? problem.heads : problem.kv_heads);
  problem.head_dim = head_dim_.value_or(problem.head_dim);
  problem.head_dim_v = head_dim_v_.value_or(head_dim_ ? problem.head_dim : problem.head_dim_v);
  if (dtype_) problem.dtype = parse_dtype(*dtype_);
  if (pass_) problem.pass = parse_pass(*pass_);
  const int64_t seq_len = seq_.value_or(problem.seq_len());
  problem.mask = Mask::parse(mask_.value_or(problem.mask.text()), seq_len);
}

void SetupOptions::apply_tuning(Tuning& tuning) const {
  tuning.strategy = strategy_.value_or(tuning.strategy);
  tuning.ranks = static_cast<int>(ranks_.value_or(tuning.ranks));
  tuning.partition = partition_.value_or(tuning.partition);
  tuning.block_tokens = block_.value_or(tuning.block_tokens);
  tuning.blocks_per_message = blocks_per_message_.value_or(tuning.blocks_per_message);
  tuning.pipeline_depth = static_cast<int>(depth_.value_or(tuning.pipeline_depth));
  tuning.lanes = static_cast<int>(lanes_.value_or(tuning.lanes));
  tuning.is_deterministic = tuning.is_deterministic || is_deterministic_;
  if (backward_) tuning.backward = parse_backward_moves(*backward_);
  tuning.accumulation_steps = static_cast<int>(accumulate_.value_or(tuning.accumulation_steps));
  tuning.optimizer_gap_ps = optimizer_gap_ps_.value_or(tuning.optimizer_gap_ps);
}

void SetupOptions::apply_topology(Scenario& scenario) const {
  if (!topology_) return;
  if (!is_topology_file(*topology_)) {
    if (topology_path(*topology_).empty()) {
      throw_usage(fmt::format("--topology: there is no file {}", *topology_),
                  is_machine_preset(*topology_)
                      ? fmt::format("it is a shape: give --machine {}", *topology_)
                      : "shapes, such as dgx-a100:nodes=2, are for --machine");
    }
    throw_usage(fmt::format("--topology: {} is no topology that can be read", *topology_),
                "take nvidia-smi topo -m, rocm-smi, a topology file of NCCL, or TOML");
  }
  scenario.machine = *topology_;
  if (!machine_) return;
  if (machine_->find(',') != std::string::npos) {
    throw_usage("--topology takes the links from its file: --machine may have no keys beside it");
  }
  const bool has_keys = topology_path(*topology_) != *topology_;
  scenario.machine += fmt::format("{}costs={}", has_keys ? "," : ":", *machine_);
}

Scenario SetupOptions::resolve() const {
  Scenario scenario;
  scenario.problem.mask = Mask::causal(kDefaultSeqLen);
  if (scenario_) scenario = read_scenario(scenario_path(*scenario_));
  apply_model(scenario);
  apply_problem(scenario.problem);
  apply_tuning(scenario.tuning);
  if (machine_) scenario.machine = *machine_;
  apply_topology(scenario);
  validate(scenario.problem);
  return scenario;
}

bool SetupOptions::print_config(const Scenario& scenario, Console& console) const {
  if (!is_config_wanted_) return false;
  if (console.is_json()) {
    throw_usage("--print-config prints TOML", "leave out --json or --print-config");
  }
  Scenario printed = scenario;
  // The file may be read from another folder.
  const std::string path = topology_path(printed.machine);
  if (!path.empty()) {
    printed.machine =
        std::filesystem::absolute(path).string() + printed.machine.substr(path.size());
  }
  console.print_raw(scenario_toml(printed));
  return true;
}

}  // namespace ring
