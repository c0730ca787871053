#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/import/nccl_xml.h"
#include "core/formats/import/safe_xml.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

constexpr size_t kMostGpus = 1024;

enum class PciKind { kBridge, kGpu, kNic, kOther };

PciKind kind_of_class(std::string_view pci_class) {
  if (pci_class.starts_with("0x0604")) return PciKind::kBridge;
  if (pci_class.starts_with("0x0300") || pci_class.starts_with("0x0302") ||
      pci_class.starts_with("0x0380")) {
    return PciKind::kGpu;
  }
  if (pci_class.starts_with("0x0207") || pci_class.starts_with("0x0200")) return PciKind::kNic;
  return PciKind::kOther;
}

/// A device with the way from it to the root of the document, innermost first.
struct Place {
  std::vector<pugi::xml_node> path;  ///< pci elements, then the cpu element.
};

Place place_of(pugi::xml_node node) {
  Place place;
  for (; node && std::string_view(node.name()) != "system"; node = node.parent()) {
    const std::string_view name = node.name();
    if (name == "pci" || name == "cpu") place.path.push_back(node);
  }
  return place;
}

/// Bytes per second of "32.0 GT/s PCIe" on 16 lanes; 0 when either is not stated.
double pcie_rate(pugi::xml_node pci) {
  const std::vector<std::string_view> words = words_of(pci.attribute("link_speed").value());
  const int lanes = pci.attribute("link_width").as_int(0);
  const auto giga = words.empty() ? std::nullopt : number_of(words[0]);
  if (!giga || *giga <= 0 || lanes <= 0) return 0;
  const double encoding = *giga < 8 ? 8.0 / 10 : 128.0 / 130;  // 8b/10b before PCIe 3.
  return *giga * 1e9 * lanes / 8 * encoding;
}

/// The narrowest step to the host; 0 as soon as one step does not say, as in virtual machines,
/// whose bridges claim rates that mean nothing.
double path_rate(const Place& place) {
  double narrowest = 0;
  for (const pugi::xml_node& pci : place.path) {
    if (std::string_view(pci.name()) != "pci") break;
    const double rate = pcie_rate(pci);
    if (rate == 0) return 0;
    narrowest = narrowest == 0 ? rate : std::min(narrowest, rate);
  }
  return narrowest;
}

int numa_of(const Place& place) {
  return place.path.empty() ? -1 : place.path.back().attribute("numaid").as_int(-1);
}

/// How two places are joined over PCIe, by the innermost element that holds both.
HopClass pcie_hop(const Place& a, const Place& b) {
  for (size_t i = 1; i < a.path.size(); ++i) {
    for (size_t j = 1; j < b.path.size(); ++j) {
      if (a.path[i] != b.path[j]) continue;
      if (std::string_view(a.path[i].name()) == "cpu") return {HopKind::kPhb, 0};
      return {i == 1 && j == 1 ? HopKind::kPix : HopKind::kPxb, 0};
    }
  }
  return {HopKind::kSys, 0};
}

class TopologyReader {
 public:
  TopologyReader(const pugi::xml_document& document, const std::string& file) : file_(file) {
    system_ = document.child("system");
    if (!system_) {
      const std::string root = document.document_element().name();
      throw_usage(fmt::format("{}: the root element is <{}>, not <system>", file, root),
                  root == "graphs" ? "This is a graph file; it says nothing about the hardware."
                                   : "A topology file is what NCCL_TOPO_DUMP_FILE writes.");
    }
  }

  NcclTopology read() {
    std::set<int> numa;
    for (const pugi::xml_node& cpu : system_.children("cpu")) {
      numa.insert(cpu.attribute("numaid").as_int(-1));
      walk(cpu);
    }
    out_.numa_nodes = static_cast<int>(numa.size());
    if (out_.gpus.empty()) take_by_class();
    sort_gpus();
    join_gpus();
    describe();
    return std::move(out_);
  }

 private:
  void add(FindingKind kind, std::string text) {
    out_.findings.push_back({kind, std::move(text), 0});
  }

  void walk(pugi::xml_node parent) {
    for (const pugi::xml_node& child : parent.children()) {
      const std::string_view name = child.name();
      if (name == "pci") {
        ++out_.pci_devices;
        pci_.push_back(child);
      }
      if (name == "gpu") take_gpu(child);
      if (name == "net") take_net(child);
      if (name == "pci" || name == "nic") walk(child);
    }
  }

  void take_gpu(pugi::xml_node node) {
    const Place place = place_of(node);
    NcclGpu gpu;
    gpu.bus_id = node.parent().attribute("busid").value();
    gpu.numa = numa_of(place);
    gpu.dev = node.attribute("dev").as_int(-1);
    gpu.rank = node.attribute("rank").as_int(-1);
    gpu.sm = node.attribute("sm").as_int(0);
    gpu.pcie_bytes_per_s = path_rate(place);
    for (const pugi::xml_node& link : node.children()) {
      const std::string_view kind = link.name();
      if (kind != "nvlink" && kind != "xgmi") continue;
      const int count = link.attribute("count").as_int(0);
      if (count < 1 || count > 1000) {
        throw_usage(fmt::format("{}: GPU {} has a link with count \"{}\"", file_, gpu.bus_id,
                                link.attribute("count").value()));
      }
      gpu.links[link.attribute("target").value()] += count;
      has_xgmi_ = has_xgmi_ || kind == "xgmi";
    }
    push_gpu(std::move(gpu), place);
  }

  void push_gpu(NcclGpu gpu, const Place& place) {
    if (out_.gpus.size() >= kMostGpus) {
      throw_usage(fmt::format("{}: more than {} GPUs", file_, kMostGpus));
    }
    places_[gpu.bus_id] = place;
    out_.gpus.push_back(std::move(gpu));
  }

  void take_net(pugi::xml_node node) {
    const Place place = place_of(node);
    NcclNic nic;
    nic.name = node.attribute("name").value();
    nic.bus_id = place.path.empty() ? "" : place.path.front().attribute("busid").value();
    nic.numa = numa_of(place);
    nic.bytes_per_s = node.attribute("speed").as_double(0) * 1e6 / 8;  // Stated in Mbit/s.
    if (nic.bytes_per_s < 0) nic.bytes_per_s = 0;
    push_nic(std::move(nic), place);
  }

  void push_nic(NcclNic nic, const Place& place) {
    if (out_.nics.size() >= kMostGpus) {
      throw_usage(fmt::format("{}: more than {} NICs", file_, kMostGpus));
    }
    nic_places_.push_back(place);
    out_.nics.push_back(std::move(nic));
  }

  /// Input templates have neither <gpu> nor <net>; their PCI classes tell.
  void take_by_class() {
    const bool has_nets = !out_.nics.empty();
    for (const pugi::xml_node& pci : pci_) {
      const Place place = place_of(pci);
      const PciKind kind = kind_of_class(pci.attribute("class").value());
      const std::string bus_id = pci.attribute("busid").value();
      if (kind == PciKind::kGpu) {
        NcclGpu gpu;
        gpu.bus_id = bus_id;
        gpu.numa = numa_of(place);
        gpu.pcie_bytes_per_s = path_rate(place);
        push_gpu(std::move(gpu), place);
      } else if (kind == PciKind::kNic && !has_nets) {
        push_nic({bus_id, "", numa_of(place), 0}, place);
      }
    }
    if (!out_.gpus.empty()) {
      add(FindingKind::kAssumed, "a template without <gpu>: the devices are told by PCI class");
      is_template_ = true;
    }
  }

  void sort_gpus() {
    std::stable_sort(out_.gpus.begin(), out_.gpus.end(),
                     [](const NcclGpu& a, const NcclGpu& b) { return a.rank < b.rank; });
  }

  /// NVLinks of a GPU that do not end at another GPU, by what they end at.
  int switch_links(const NcclGpu& gpu) const {
    int count = 0;
    for (const auto& [target, links] : gpu.links) {
      if (places_.count(target) == 0) count += links;
    }
    return count;
  }

  HopClass gpu_hop(const NcclGpu& a, const NcclGpu& b) const {
    const HopKind kind = has_xgmi_ ? HopKind::kXgmi : HopKind::kNvLink;
    const auto direct = a.links.find(b.bus_id);
    if (direct != a.links.end()) return {kind, direct->second};
    const int through = std::min(switch_links(a), switch_links(b));
    if (through > 0) return {kind, through};
    return pcie_hop(places_.at(a.bus_id), places_.at(b.bus_id));
  }

  void join_gpus() {
    const size_t count = out_.gpus.size();
    out_.gpu_hops.assign(count, std::vector<HopClass>(count));
    out_.gpu_nic_hops.assign(count, std::vector<HopClass>(out_.nics.size()));
    for (size_t i = 0; i < count; ++i) {
      const NcclGpu& gpu = out_.gpus[i];
      for (size_t j = 0; j < count; ++j) {
        out_.gpu_hops[i][j] = i == j ? HopClass{HopKind::kSelf, 0} : gpu_hop(gpu, out_.gpus[j]);
      }
      for (size_t n = 0; n < out_.nics.size(); ++n) {
        out_.gpu_nic_hops[i][n] = pcie_hop(places_.at(gpu.bus_id), nic_places_[n]);
      }
    }
  }

  void describe() {
    if (out_.gpus.empty()) {
      add(FindingKind::kUnknown,
          fmt::format("0 GPUs identified among {} PCI devices: the file names neither GPUs nor PCI "
                      "classes",
                      out_.pci_devices));
      return;
    }
    add(FindingKind::kFound,
        fmt::format("{}, {}, {}", counted(out_.gpus.size(), "GPU"),
                    counted(out_.nics.size(), "NIC"), counted(out_.numa_nodes, "NUMA node")));
    std::map<std::string, int> pairs;
    for (size_t i = 0; i < out_.gpus.size(); ++i) {
      for (size_t j = i + 1; j < out_.gpus.size(); ++j) ++pairs[out_.gpu_hops[i][j].text()];
    }
    for (const auto& [hop, count] : pairs) {
      add(FindingKind::kFound, fmt::format("{}: {} of GPUs", hop, counted(count, "pair")));
    }
    bool has_links = false, has_rate = true, uses_switch = false;
    for (const NcclGpu& gpu : out_.gpus) {
      has_links = has_links || !gpu.links.empty();
      has_rate = has_rate && gpu.pcie_bytes_per_s > 0;
      uses_switch = uses_switch || switch_links(gpu) > 0;
    }
    if (uses_switch) {
      add(FindingKind::kAssumed,
          "links that end at no GPU of the file end at switches which join all GPUs");
    }
    if (!has_links && is_template_) add(FindingKind::kUnknown, "NVLinks: a template has none");
    if (!has_links && !is_template_) add(FindingKind::kFound, "no links between GPUs but PCIe");
    if (!has_rate) {
      add(FindingKind::kUnknown, "the PCIe rate: a step on the way claims no width");
    } else if (is_template_) {
      add(FindingKind::kAssumed, "the PCIe rates are those of the template, not measured");
    }
  }

  const std::string& file_;
  pugi::xml_node system_;
  NcclTopology out_;
  std::vector<pugi::xml_node> pci_;
  std::map<std::string, Place> places_;  ///< Of GPUs, by bus id.
  std::vector<Place> nic_places_;
  bool has_xgmi_ = false, is_template_ = false;
};

}  // namespace

NcclTopology parse_nccl_topology(std::string_view text, const std::string& file) {
  pugi::xml_document document;
  parse_xml(text, file, document);
  return TopologyReader(document, file).read();
}

}  // namespace ring
