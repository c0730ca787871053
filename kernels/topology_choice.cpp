#include "kernels/topology_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/import/imported.h"
#include "core/formats/import/link_curve.h"
#include "core/formats/import/shape_of.h"
#include "core/machine_presets.h"
#include "core/paths.h"
#include "core/shape_options.h"
#include "core/topology_file.h"
#include "kernels/machine_choice.h"

namespace ring {

namespace {

struct TopologyText {
  std::string path, keys;
};

/// The path is the longest part before a ':' that is a file.
TopologyText split(const std::string& text) {
  if (file_exists(text)) return {text, {}};
  for (size_t colon = text.rfind(':'); colon != std::string::npos && colon > 0;
       colon = text.rfind(':', colon - 1)) {
    if (file_exists(text.substr(0, colon))) return {text.substr(0, colon), text.substr(colon + 1)};
  }
  return {};
}

void add(Findings& findings, FindingKind kind, std::string text) {
  findings.push_back({kind, std::move(text), 0});
}

std::string given_gpu(const NcclTopology& topology) { return gpu_preset_of(topology); }
std::string given_gpu(const TopoMatrix& /*matrix*/) { return {}; }

struct ReadShape {
  Shape shape;
  std::string gpu;  ///< As the file says; empty when it does not.
};

ReadShape read_shape(const std::string& path, const ShapeRates& rates, Findings& findings) {
  if (path.ends_with(".toml")) {
    if (rates.nodes > 1) {
      throw_usage(path + ": a topology in TOML states all its nodes; nodes= is for other files");
    }
    return {read_topology_file(path), {}};
  }
  const Imported file = read_imported(path);
  findings = file.findings;
  const auto shape = [&](const auto& content) {
    return ReadShape{shape_of(content, path, rates, findings), given_gpu(content)};
  };
  if (const auto* matrix = std::get_if<TopoMatrix>(&file.content)) return shape(*matrix);
  return shape(std::get<NcclTopology>(file.content));
}

/// Costs of computation from another machine; the links stay.
void take_costs(const Machine& from, Machine& to) {
  Machine taken = from;
  taken.name = fmt::format("{}, costs of {}", to.name, from.name);
  taken.topology = std::move(to.topology);
  taken.processors = std::move(to.processors);
  taken.transfer = TransferKind::kLinks;
  for (const auto& [key, source] : to.provenance) {
    if (key.starts_with("link") || key == "latency") taken.provenance[key] = source;
  }
  to = std::move(taken);
}

void put_in_order(const std::vector<int>& order, Machine& machine) {
  std::vector<int> processors;
  for (const int at : order) processors.push_back(machine.processors[static_cast<size_t>(at)]);
  machine.processors = std::move(processors);
}

LinkCurves curves_of(const std::string& path) {
  const Imported file = read_imported(path);
  if (const auto* log = std::get_if<NcclTestsLog>(&file.content)) return link_curves(*log);
  if (const auto* log = std::get_if<LinkLog>(&file.content)) return link_curves(*log);
  throw_usage(fmt::format("{}: {}, not a link test", path, describe(file.kind)),
              "take a log of nccl-tests, perftest, p2pBandwidthLatencyTest, nvbandwidth, "
              "superbench or an exchange of pairs");
}

/// The class of the links next to GPUs that is widest; empty when they have none.
std::string widest_class(const Machine& machine) {
  const Link* widest = nullptr;
  for (const Link& link : machine.topology.links()) {
    const bool is_next = std::find(machine.processors.begin(), machine.processors.end(),
                                   link.from) != machine.processors.end();
    if (is_next && (widest == nullptr || link.bytes_per_s > widest->bytes_per_s)) widest = &link;
  }
  return widest == nullptr ? std::string() : widest->link_class;
}

/// The widest, then shortest, route between two processors whose narrowest link is of the class.
Route widest_route(const Machine& machine, const std::string& link_class) {
  Route best;
  const size_t count = std::min<size_t>(machine.processors.size(), 64);
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < machine.processors.size(); ++b) {
      const int from = machine.processors[a], to = machine.processors[b];
      if (from == to || !machine.topology.has_route(from, to)) continue;
      const Route route = machine.topology.route(from, to);
      const bool has_class = std::any_of(route.links.begin(), route.links.end(), [&](int link) {
        return machine.topology.links()[static_cast<size_t>(link)].link_class == link_class;
      });
      const bool is_better =
          best.links.empty() || route.bytes_per_s > best.bytes_per_s ||
          (route.bytes_per_s == best.bytes_per_s && route.latency_ps < best.latency_ps);
      if (has_class && is_better) best = route;
    }
  }
  return best;
}

}  // namespace

bool is_topology_file(const std::string& text) {
  const TopologyText parts = split(text);
  if (parts.path.empty()) return false;
  if (parts.path.ends_with(".toml")) return true;
  const FileKind kind = detect(head_of_file(parts.path));
  return kind == FileKind::kTopoMatrix || kind == FileKind::kNcclTopology;
}

std::string topology_path(const std::string& text) { return split(text).path; }

TopologyMachine read_topology_machine(const std::string& text) {
  const TopologyText parts = split(text);
  if (parts.path.empty()) throw_usage(text + ": there is no such file");
  ShapeOptions options(parts.path, parts.keys);
  ShapeRates rates;
  // A negative rate cannot be given: 0 stands for none.
  const auto rate = [&](std::string_view key) { return options.bandwidth(key, 0); };
  rates.nvlink_bytes_per_s = rate("nvlink");
  rates.xgmi_bytes_per_s = rate("xgmi");
  rates.pcie_bytes_per_s = rate("pcie");
  rates.nic_bytes_per_s = rate("nic");
  rates.nodes = options.count("nodes", 1, 1, 4096);
  const std::string gpu = options.text("gpu", ""), costs = options.text("costs", "");
  const std::string links = options.text("links", "");
  TopologyMachine out;
  ReadShape read = read_shape(parts.path, rates, out.findings);
  const std::vector<int> order = options.order(static_cast<int>(read.shape.processors.size()));
  options.require_all_used();
  if (!gpu.empty() && !costs.empty()) {
    throw_usage(text + ": gpu= and costs= both say what computation costs", "give one of them");
  }
  out.has_gpu_assumed = gpu.empty() && costs.empty() && read.gpu.empty();
  const std::string known = !gpu.empty() ? gpu : read.gpu.empty() ? "a100" : read.gpu;
  out.machine = machine_of_shape(std::move(read.shape), known);
  if (!costs.empty()) take_costs(choose_machine(costs).machine, out.machine);
  if (out.has_gpu_assumed) {
    add(out.findings, FindingKind::kAssumed,
        "the GPU is an A100, for the costs of computation (gpu=h100 or costs=FILE say otherwise)");
  }
  put_in_order(order, out.machine);
  if (!links.empty()) apply_link_test(links, out.machine, out.findings);
  return out;
}

void apply_link_test(const std::string& path, Machine& machine, Findings& findings) {
  const LinkCurves curves = curves_of(path);
  const LinkCurve* curve = best_curve(curves);
  if (curve == nullptr) {
    throw_usage(path + ": no figure of a hop between two GPUs or two hosts in it");
  }
  const std::string link_class = curve->crosses_hosts ? "nic" : widest_class(machine);
  const Route route = widest_route(machine, link_class);
  if (route.links.empty()) {
    throw_usage(
        fmt::format("{}: measured '{}' links, of which the topology has none", path, link_class));
  }
  const double factor = curve->bytes_per_s / route.bytes_per_s;
  const double latency_s = seconds_from_picoseconds(route.latency_ps);
  const double stretch = curve->start_s > 0 && latency_s > 0 ? curve->start_s / latency_s : 1;
  for (Link& link : machine.topology.mutable_links()) {
    if (link.link_class != link_class) continue;
    link.bytes_per_s *= factor;
    link.latency_ps = static_cast<Picoseconds>(static_cast<double>(link.latency_ps) * stretch);
  }
  const std::string figures = fmt::format(
      "{}{} of {} in {}", format_bandwidth(curve->bytes_per_s),
      curve->start_s > 0 ? ", start " + format_time(picoseconds_from_seconds(curve->start_s)) : "",
      curve->how, path);
  machine.provenance["link " + link_class] = "measured: " + figures;
  findings.insert(findings.end(), curves.findings.begin(), curves.findings.end());
  add(findings, FindingKind::kFound, fmt::format("{} links: {}", link_class, figures));
}

}  // namespace ring
