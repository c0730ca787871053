#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/machine_json.h"
#include "core/hop_label.h"
#include "core/paths.h"
#include "core/topology_file.h"
#include "experiments/import_json.h"
#include "experiments/placement_picture.h"
#include "experiments/report.h"
#include "experiments/table.h"
#include "experiments/verb.h"
#include "kernels/machine_choice.h"
#include "kernels/topology_choice.h"

namespace ring {

namespace {

constexpr size_t kMostShown = 64;

std::string rate_text(double bytes_per_s) {
  return bytes_per_s > 0 ? format_bandwidth(bytes_per_s) : "no limit";
}

class PlaceVerb final : public Verb {
 public:
  std::string_view name() const override { return "place"; }
  std::string_view summary() const override {
    return "Find the best ring over a topology, and what its hops get";
  }

  void declare(VerbOptions& options) override {
    options.heading("Topology");
    options.text("--topology", topology_, "FILE",
                 "Machine file, shape such as dgx-a100:nodes=2, topology in TOML, output of\n"
                 "nvidia-smi topo -m or rocm-smi, or a topology file of NCCL; the last two with\n"
                 "keys behind: topo.txt:nodes=2,nvlink=25GB/s,pcie=,nic=,xgmi=,links=LOG\n"
                 "[the profile that ringscope calibrate left]");
    options.text("--processors", processors_, "LIST",
                 "Which processors: 0,2,4-7, by their numbers in the topology [all]");
    options.heading("Rings");
    options.bandwidth("--channel", channel_,
                      "What one channel needs [one NVLink, 25 GB/s; else what the ring carries]");
    options.heading("Files");
    options.text("-o,--output", output_, "FILE",
                 "Write the machine with its ranks in this order (.json, or .toml: links only)");
    options.text("--svg", svg_, "FILE", "Write a picture of the ring");
  }

  int run(VerbContext& context) override {
    if (topology_ && output_ && is_topology_file(*topology_)) {
      require_other_file(*output_, topology_path(*topology_));
    }
    if (channel_ && *channel_ <= 0) throw_usage("--channel must be more than 0");
    Findings findings;
    Machine machine = read_machine(findings);
    if (machine.transfer == TransferKind::kReceiverCopy) {
      throw_usage(fmt::format("'{}' copies messages in memory: every ring is as good as another",
                              machine.name),
                  "give --topology FILE or a shape, for example --topology dgx-1v");
    }
    const std::vector<int> chosen = chosen_processors(machine);
    PlacementOptions options;
    options.channel_bytes_per_s = channel_.value_or(0);
    const Placement placement = place_ring(machine.topology, chosen, options);
    Console& console = context.console;
    if (console.is_json()) {
      print_json(console, machine, chosen, placement, findings);
    } else {
      print_text(console, machine, placement, findings);
    }
    if (placement.rings.empty()) return exit_code(ErrorKind::kRunFailed);
    write_files(console, machine, placement);
    return 0;
  }

 private:
  Machine read_machine(Findings& findings) const {
    const std::string text = topology_.value_or("");
    if (topology_ && !is_topology_file(text)) return choose_machine(text).machine;
    if (!topology_) return choose_machine({}).machine;
    TopologyMachine read = read_topology_machine(text);
    findings = std::move(read.findings);
    return std::move(read.machine);
  }

  /// "0,2,4-7" as nodes, in that order.
  std::vector<int> chosen_processors(const Machine& machine) const {
    if (!processors_) return machine.processors;
    std::vector<int> chosen;
    const auto count = std::ssize(machine.processors);
    std::string_view rest = *processors_;
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      const size_t dash = item.find('-');
      const int64_t low = parse_count(item.substr(0, dash), "--processors");
      const int64_t high =
          dash == std::string_view::npos ? low : parse_count(item.substr(dash + 1), "--processors");
      if (low < 0 || high < low || high >= count) {
        throw_usage(fmt::format("--processors: '{}' is not within 0 to {}", item, count - 1));
      }
      for (int64_t p = low; p <= high; ++p) {
        chosen.push_back(machine.processors[static_cast<size_t>(p)]);
      }
    }
    return chosen;
  }

  static std::string ring_text(const Machine& machine, const PlacedRing& ring) {
    std::vector<std::string> names;
    for (const int node : ring.processors) {
      if (names.size() == kMostShown) {
        names.push_back(fmt::format("... ({} in all)", ring.processors.size()));
        break;
      }
      names.push_back(machine.topology.nodes()[static_cast<size_t>(node)].name);
    }
    return fmt::format("{}", fmt::join(names, " "));
  }

  static std::string quality_text(const Placement& placement) {
    const RingOrder& order = placement.order;
    if (placement.rings.front().hops.empty()) return "one processor: a ring without hops";
    const HopLevel& level = placement.levels[static_cast<size_t>(order.worst_level)];
    return fmt::format("{} of {} hops, {}, {} alone", order.worst_hops,
                       placement.rings.front().hops.size(), level.label,
                       rate_text(level.bytes_per_s));
  }

  static std::string proof_text(const Placement& placement) {
    const RingOrder& order = placement.order;
    if (order.order.size() <= static_cast<size_t>(kMostExactRanks)) {
      return order.is_sharing_least ? "exact: no ring is better"
                                    : "exact for its hops; a ring that shares NICs less was not "
                                      "found, and not ruled out";
    }
    if (order.is_best) return "heuristic, and at its bound: no ring has better hops";
    const bool is_level_best = order.bound_worst_level == order.worst_level;
    return is_level_best
               ? fmt::format("heuristic: any ring has at least {} hops as bad as the worst",
                             order.bound_worst_hops)
               : "heuristic: no ring is known to need hops as bad as the worst";
  }

  static std::string closes_text(const Placement& placement) {
    const PlacedRing& ring = placement.rings.front();
    if (ring.hops.empty()) return "yes";
    if (placement.closes_over_nvlink) return "yes, over NVLink";
    std::map<std::string, int> kinds;
    for (const PlacedHop& hop : ring.hops) ++kinds[hop.label];
    std::vector<std::string> parts;
    for (const auto& [label, count] : kinds) parts.push_back(fmt::format("{} {}", count, label));
    return fmt::format("yes, but not over NVLink: {}", fmt::join(parts, ", "));
  }

  static void print_text(Console& console, const Machine& machine, const Placement& placement,
                         const Findings& findings) {
    const Style& style = console.style();
    for (const Finding& finding : findings) {
      if (finding.kind == FindingKind::kAssumed) console.note("assumed: " + finding.text);
    }
    if (placement.rings.empty()) {
      console.print(lines_text(
          {{"closes", "no: there is no way between some of the processors", Tone::kBad}}, style));
      return;
    }
    const PlacedRing& best = placement.rings.front();
    std::vector<ReportLine> lines{{"ring", ring_text(machine, best), Tone::kStrong},
                                  {"closes", closes_text(placement)},
                                  {"worst hops", quality_text(placement)},
                                  {"proof", proof_text(placement)}};
    if (!best.hops.empty() && placement.channels > 0) {
      lines.push_back(
          {"at once", fmt::format("every hop gets at least {}", rate_text(best.bytes_per_s))});
      if (placement.order.sharing > 1) {
        lines.push_back(
            {"sharing", fmt::format("{} hops share a NIC", placement.order.sharing), Tone::kWarn});
      }
      lines.push_back({"channels", channels_text(placement)});
    }
    console.print(lines_text(lines, style));
    if (!best.hops.empty()) console.print("\n" + hop_table_text(machine, placement, style));
    if (placement.rings.size() > 1) console.print("\n" + rings_text(machine, placement, style));
  }

  static std::string channels_text(const Placement& placement) {
    const bool is_all = placement.total_bytes_per_s >= 0.999 * placement.bound_bytes_per_s;
    return fmt::format("{} of {} on {} {}: {} in all, {}", placement.channels,
                       rate_text(placement.channel_bytes_per_s), placement.rings.size(),
                       placement.rings.size() == 1 ? "ring" : "rings",
                       rate_text(placement.total_bytes_per_s),
                       is_all ? "as much as the links carry"
                              : "of at most " + rate_text(placement.bound_bytes_per_s));
  }

  static std::string hop_table_text(const Machine& machine, const Placement& placement,
                                    const Style& style) {
    Table table;
    table.column("hop", Align::kLeft).column("from", Align::kLeft).column("to", Align::kLeft);
    table.column("over", Align::kLeft).column("alone").column("at once").column("latency");
    table.column("through", Align::kLeft);
    const PlacedRing& ring = placement.rings.front();
    const auto& nodes = machine.topology.nodes();
    for (size_t i = 0; i < std::min(ring.hops.size(), kMostShown); ++i) {
      const PlacedHop& hop = ring.hops[i];
      const bool is_worst =
          hop.level == placement.order.worst_level && placement.order.worst_level > 0;
      table.row({fmt::format("{}", i),
                 nodes[static_cast<size_t>(hop.from)].name,
                 nodes[static_cast<size_t>(hop.to)].name,
                 {hop.label, is_worst ? Tone::kWarn : Tone::kPlain},
                 rate_text(hop.alone_bytes_per_s),
                 rate_text(hop.at_once_bytes_per_s),
                 format_time(hop.route.latency_ps),
                 nodes_between(machine.topology, hop.route)});
    }
    return table.text(style);
  }

  static std::string rings_text(const Machine& machine, const Placement& placement,
                                const Style& style) {
    Table table;
    table.column("ring").column("channels").column("rate").column("over", Align::kLeft);
    table.column("order", Align::kLeft);
    for (size_t r = 0; r < placement.rings.size(); ++r) {
      const PlacedRing& ring = placement.rings[r];
      table.row({fmt::format("{}", r), fmt::format("{}", ring.channels),
                 rate_text(ring.bytes_per_s), ring.label, ring_text(machine, ring)});
    }
    return table.text(style);
  }

  static Json hop_json(const Machine& machine, const PlacedHop& hop) {
    const auto& nodes = machine.topology.nodes();
    return {{"from", nodes[static_cast<size_t>(hop.from)].name},
            {"to", nodes[static_cast<size_t>(hop.to)].name},
            {"over", hop.label},
            {"level", hop.level},
            {"through", nodes_between(machine.topology, hop.route)},
            {"latency_ps", hop.route.latency_ps},
            {"alone_bytes_per_s", hop.alone_bytes_per_s},
            {"at_once_bytes_per_s", hop.at_once_bytes_per_s},
            {"with_all_bytes_per_s", hop.with_all_bytes_per_s}};
  }

  void print_json(Console& console, const Machine& machine, const std::vector<int>& chosen,
                  const Placement& placement, const Findings& findings) const {
    Json document = json_document("placement");
    document["machine"] = machine.name;
    document["processors"] = chosen.size();
    document["closes"] = !placement.rings.empty();
    document["closes_over_nvlink"] = placement.closes_over_nvlink;
    const RingOrder& order = placement.order;
    document["order"] = order.order;
    document["worst_hops"] = order.worst_hops;
    document["is_best"] = order.is_best;
    document["is_exact"] = static_cast<int>(chosen.size()) <= kMostExactRanks;
    document["bound_worst_hops"] = order.bound_worst_hops;
    document["sharing"] = order.sharing;
    document["channels"] = placement.channels;
    document["channel_bytes_per_s"] = placement.channel_bytes_per_s;
    document["total_bytes_per_s"] = placement.total_bytes_per_s;
    document["bound_bytes_per_s"] = placement.bound_bytes_per_s;
    Json levels = Json::array(), rings = Json::array();
    for (size_t l = 0; l < placement.levels.size(); ++l) {
      const HopLevel& level = placement.levels[l];
      levels.push_back({{"over", level.label},
                        {"bytes_per_s", level.bytes_per_s},
                        {"latency_ps", level.latency_ps},
                        {"hops", order.hops_at_level.empty() ? 0 : order.hops_at_level[l]}});
    }
    for (const PlacedRing& ring : placement.rings) {
      Json hops = Json::array(), names = Json::array();
      for (const PlacedHop& hop : ring.hops) hops.push_back(hop_json(machine, hop));
      for (const int node : ring.processors) {
        names.push_back(machine.topology.nodes()[static_cast<size_t>(node)].name);
      }
      rings.push_back({{"processors", names},
                       {"bytes_per_s", ring.bytes_per_s},
                       {"channels", ring.channels},
                       {"over", ring.label},
                       {"hops", hops}});
    }
    document["levels"] = levels;
    document["rings"] = rings;
    document["findings"] = findings_json(findings);
    console.print_document(document);
  }

  /// A machine from a file is called like its path.
  static std::string without_folders(const std::string& name) {
    return name.substr(name.rfind('/', name.find(", ")) + 1);
  }

  void write_files(Console& console, Machine& machine, const Placement& placement) const {
    if (svg_) {
      write_file(*svg_, placement_svg(machine.topology, placement,
                                      "Best ring over " + without_folders(machine.name)));
      console.note(fmt::format("wrote {} (picture)", *svg_));
    }
    if (!output_) return;
    machine.processors = placement.rings.front().processors;
    machine.provenance["order of ranks"] = "best ring, ringscope place";
    if (output_->ends_with(".toml")) {
      write_file(*output_, topology_toml({machine.name, machine.topology, machine.processors, {}}));
    } else {
      write_machine(*output_, {machine, {}});
    }
    console.note(fmt::format("wrote {} (ranks in ring order)", *output_));
  }

  std::optional<std::string> topology_, processors_, output_, svg_;
  std::optional<double> channel_;
};

}  // namespace

std::unique_ptr<Verb> make_place_verb() { return std::make_unique<PlaceVerb>(); }

}  // namespace ring
