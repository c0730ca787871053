#include "experiments/import_output.h"

#include <fmt/format.h>

#include <iterator>

#include "core/error.h"
#include "core/formats/chrome_trace.h"
#include "core/formats/csv_table.h"
#include "core/formats/import/link_curve.h"
#include "core/formats/import/trace_run.h"
#include "core/formats/scenario_toml.h"
#include "core/program_text.h"
#include "core/topology_file.h"
#include "kernels/topology_choice.h"

namespace ring {

namespace {

bool is_trace_name(const std::string& path) {
  return path.ends_with(".trace.json") || path.ends_with(".trace.json.gz");
}

constexpr std::string_view kPublishedColumns =
    "id,source,location,gpu,n_gpus,nodes,link,link_bw_stated,impl,algorithm,cp,tp,pp,dp,batch,"
    "seqlen_total,seqlen_per_gpu,heads,kv_heads,head_dim,layers,dtype,causal,pass,metric,value,"
    "unit,value_kind,note\n";

ImportOutput published(const AttentionBenchLog& log, const std::string& source) {
  std::string text(kPublishedColumns);
  for (const AttentionBenchRow& row : log.rows) {
    const int64_t gpus = row.nodes * row.ranks_per_node;
    fmt::format_to(std::back_inserter(text),
                   "L{},{},line {},,{},{},,,,{},{},,,,{},{},{},{},{},{},attention op only,,{},{},"
                   "time,{},s,printed,{}\n",
                   row.line, csv_cell(source), row.line, gpus, row.nodes, csv_cell(row.method),
                   gpus, row.batch, row.seq_len, gpus > 0 ? row.seq_len / gpus : 0, row.heads,
                   row.kv_heads, row.head_dim, row.is_causal ? "true" : "false",
                   row.is_backward ? "bwd" : "fwd", row.seconds,
                   row.variant > 0 ? fmt::format("row {} of that name", row.variant) : "");
  }
  return {"measurements", text};
}

ImportOutput published(const TrainingBench& bench, const std::string& source) {
  std::string text(kPublishedColumns);
  for (const TrainingBenchRow& row : bench.rows) {
    const auto number = [](int64_t value) { return value > 0 ? fmt::format("{}", value) : ""; };
    const int64_t ranks = row.context_parallel;
    fmt::format_to(std::back_inserter(text),
                   "L{},{},line {},,{},,,,,ring,{},,,{},,{},{},,,,,,true,training step,"
                   "throughput per GPU,{},tokens/s/GPU,printed,{}\n",
                   row.line, csv_cell(source), row.line, number(row.gpus), number(ranks),
                   number(row.data_parallel), row.seq_len, ranks > 0 ? row.seq_len / ranks : 0,
                   row.tokens_per_s_per_gpu,
                   csv_cell(fmt::format("{}; {} GiB", row.caption, row.memory_gib)));
  }
  return {"measurements", text};
}

class OutputWriter {
 public:
  OutputWriter(const Imported& file, const std::string& path, const ImportChoices& choices)
      : file_(file), path_(path), choices_(choices) {}

  ImportOutput operator()(const TopoMatrix& /*matrix*/) const { return machine(); }
  ImportOutput operator()(const NcclTopology& /*topology*/) const { return machine(); }
  ImportOutput operator()(const NcclTestsLog& log) const { return curve(link_curves(log)); }
  ImportOutput operator()(const LinkLog& log) const { return curve(link_curves(log)); }
  ImportOutput operator()(const HfConfig& config) const {
    const ModelShape& model = config.model;
    const LayerGroup& group =
        choices_.layer >= 0 ? group_of_layer(model, choices_.layer) : dominant_group(model);
    const int64_t longest = model.max_positions > 0 ? model.max_positions : 4096;
    Scenario scenario;
    scenario.name = model.name.empty() ? choices_.source : model.name;
    scenario.problem =
        problem_of(group.shape, model.dtype, choices_.seq_len > 0 ? choices_.seq_len : longest);
    scenario.model = choices_.source;
    return {"scenario", scenario_toml(scenario)};
  }
  ImportOutput operator()(const KernelTrace& trace) const {
    return run(run_of_traces({trace}, {choices_.source}));
  }
  ImportOutput operator()(const RunFile& file) const { return run(file); }
  ImportOutput operator()(const AttentionBenchLog& log) const {
    return published(log, choices_.source);
  }
  ImportOutput operator()(const TrainingBench& bench) const {
    return published(bench, choices_.source);
  }
  ImportOutput operator()(const RingProgram& program) const {
    return {"program", program_text(program)};
  }
  ImportOutput operator()(const MachineFile& file) const {
    return {"machine file", machine_json(file)};
  }
  ImportOutput operator()(const NcclGraphs& /*graphs*/) const {
    refuse("it holds channels, not the links they run over; take the topology file as well");
  }
  ImportOutput operator()(const NcclInfoLog& /*log*/) const {
    refuse("it holds rings and transports, not what they carry; --json gives the rings");
  }
  ImportOutput operator()(const KernelSummary& /*summary*/) const {
    refuse("it holds times of kernels, not when they ran; export a trace instead");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw_usage(fmt::format("{}: {}, from which nothing is written: {}", choices_.source,
                            describe(file_.kind), why));
  }

  ImportOutput run(const RunFile& run) const {
    if (!is_trace_name(path_)) return {"run file", run_json(run)};
    std::vector<TraceInput> inputs;
    for (const auto* timeline : {&run.measured, &run.predicted}) {
      const bool has_names = timeline == &run.measured && !run.op_names.empty();
      if (*timeline) inputs.push_back({&**timeline, nullptr, has_names ? &run.op_names : nullptr});
    }
    if (inputs.empty()) refuse("it has no timeline");
    return {"Chrome trace", chrome_trace(inputs)};
  }

  ImportOutput machine() const {
    TopologyMachine made = read_topology_machine(choices_.source);
    if (path_.ends_with(".toml")) {
      Shape shape{made.machine.name,
                  std::move(made.machine.topology),
                  std::move(made.machine.processors),
                  {}};
      return {"topology", topology_toml(shape)};
    }
    return {"machine file", machine_json({std::move(made.machine), {}})};
  }

  ImportOutput curve(const LinkCurves& curves) const {
    if (curves.curves.empty()) refuse("it has no figure of a hop between two devices");
    return {"link curve", link_curves_csv(curves)};
  }

  const Imported& file_;
  const std::string& path_;
  const ImportChoices& choices_;
};

}  // namespace

ImportOutput import_output(const Imported& file, const std::string& path,
                           const ImportChoices& choices) {
  return std::visit(OutputWriter(file, path, choices), file.content);
}

}  // namespace ring
