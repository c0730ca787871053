#include "core/formats/import/shape_of.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/formats/import/device_tree.h"

namespace ring {
namespace {

constexpr double kPcie3 = 15.75e9;  // 8 GT/s x 16 lanes, 128b/130b
constexpr double kPcie4 = 31.5e9;
constexpr double kPcie5 = 63e9;
constexpr double kXgmi = 36e9;  // of MI200; a link of MI300 carries 48 GB/s or more
constexpr double kNic = 25e9;   // 200 Gb/s
constexpr int kMostNodes = 4096;
constexpr int kMostDevices = 256;

/// What is assumed where neither file nor user says more.
class ShapeBuilder {
 public:
  ShapeBuilder(const ShapeRates& given, Findings& findings) : given_(given), findings_(findings) {}

  Shape build(const HostDevices& devices, HostRates rates, int sm, const std::string& name) {
    if (devices.gpus == 0) {
      throw_usage(name + ": no GPU is known by it, so there is nothing to place ranks on");
    }
    if (devices.devices() > kMostDevices) {
      throw_usage(
          fmt::format("{}: {} devices are more than one host has", name, devices.devices()));
    }
    if (given_.nodes < 1 || given_.nodes > kMostNodes) {
      throw_usage(fmt::format("{} nodes: expected 1 to {}", given_.nodes, kMostNodes));
    }
    if (given_.nodes > 1 && devices.nics == 0) {
      throw_usage(name + ": has no NIC over which several nodes could meet");
    }
    fill(devices, sm, rates);
    Shape shape;
    shape.name = name;
    std::vector<int> nics;
    for (int host = 0; host < given_.nodes; ++host) {
      const std::string prefix = given_.nodes == 1 ? "" : fmt::format("node{}.", host);
      const auto gpus = add_host(devices, rates, host, prefix, shape.topology, nics);
      shape.processors.insert(shape.processors.end(), gpus.begin(), gpus.end());
    }
    if (given_.nodes > 1) add_rails(rates, nics, shape.topology);
    shape.provenance = sources_;
    shape.provenance["links"] = "as " + name + " says which devices are joined";
    shape.provenance["latency"] = "assumed; no such file states latencies";
    return shape;
  }

 private:
  void assume(const std::string& key, const std::string& text) {
    findings_.push_back({FindingKind::kAssumed, text, 0});
    sources_[key] = "assumed: " + text;
  }

  /// The most links to one other GPU.
  static int most_links(const HostDevices& devices, HopKind kind) {
    int most = 0;
    for (int a = 0; a < devices.gpus; ++a) {
      for (int b = 0; b < devices.gpus; ++b) {
        const HopClass& hop = devices.hops[static_cast<size_t>(a)][static_cast<size_t>(b)];
        if (a != b && hop.kind == kind) most = std::max(most, std::max(1, hop.links));
      }
    }
    return most;
  }

  void fill(const HostDevices& devices, int sm, HostRates& rates) {
    const int nvlinks = most_links(devices, HopKind::kNvLink);
    if (nvlinks > 0) fill_nvlink(sm, rates);
    if (most_links(devices, HopKind::kXgmi) > 0) {
      rates.xgmi = given_.xgmi_bytes_per_s;
      if (rates.xgmi <= 0) {
        rates.xgmi = kXgmi;
        assume("link xgmi", "36 GB/s each way for one xGMI link, as on MI200");
      }
    }
    fill_pcie(nvlinks, rates);
    bool has_assumed_nic = false;
    for (double& nic : rates.nic) {
      if (given_.nic_bytes_per_s > 0) nic = given_.nic_bytes_per_s;
      if (nic > 0) continue;
      nic = kNic;
      has_assumed_nic = true;
    }
    if (has_assumed_nic) assume("link nic", "200 Gb/s for a NIC whose rate is not stated");
  }

  void fill_nvlink(int sm, HostRates& rates) {
    rates.nvlink = given_.nvlink_bytes_per_s;
    if (rates.nvlink > 0) return;
    rates.nvlink = sm >= 100 ? 50e9 : sm == 60 ? 20e9 : 25e9;
    if (sm > 0) {
      sources_["link nvlink"] = fmt::format(
          "datasheets: {:.0f} GB/s each way for one NVLink of sm_{}", rates.nvlink / 1e9, sm);
    } else {
      assume("link nvlink",
             "25 GB/s each way for one NVLink, as on V100, A100 and H100 (P100 20, Blackwell 50)");
    }
  }

  void fill_pcie(int nvlinks, HostRates& rates) {
    const double usual = nvlinks > 12 ? kPcie5 : nvlinks > 0 && nvlinks < 7 ? kPcie3 : kPcie4;
    bool has_assumed = false;
    double widest = 0;
    for (double& pcie : rates.pcie) {
      if (given_.pcie_bytes_per_s > 0) pcie = given_.pcie_bytes_per_s;
      has_assumed = has_assumed || pcie <= 0;
      if (pcie <= 0) pcie = usual;
      widest = std::max(widest, pcie);
    }
    if (has_assumed) {
      assume("link pcie",
             fmt::format("{:.2f} GB/s each way for PCIe of a GPU whose width and speed are not "
                         "stated",
                         usual / 1e9));
    }
    rates.socket = widest > 40e9 ? 192e9 : widest > 20e9 ? 128e9 : 41.6e9;
    rates.node = 2 * rates.socket;
    sources_["link socket"] =
        fmt::format("assumed: {:.0f} GB/s each way between sockets", rates.socket / 1e9);
  }

  /// NIC j of every node on rail j; a spine with the capacity of all NICs of a rail joins rails.
  void add_rails(const HostRates& rates, const std::vector<int>& nics, Topology& topology) const {
    const size_t count = rates.nic.size();
    int spine = -1;
    if (count > 1) spine = topology.add_node({"spine", NodeKind::kSwitch, -1});
    for (size_t rail = 0; rail < count; ++rail) {
      const int at = topology.add_node({fmt::format("rail{}", rail), NodeKind::kSwitch, -1});
      for (size_t nic = rail; nic < nics.size(); nic += count) {
        topology.connect(nics[nic], at, rates.nic[rail], 0, "nic");
      }
      if (spine >= 0) {
        topology.connect(at, spine, rates.nic[rail] * given_.nodes, 0, "network");
      }
    }
  }

  const ShapeRates& given_;
  Findings& findings_;
  std::map<std::string, std::string> sources_;
};

/// Whether PCIe joins two GPUs that have no access to each other.
bool goes_through_host(const TopoMatrix& matrix, const std::vector<size_t>& gpus) {
  if (matrix.peer_access.empty()) return false;
  for (const size_t a : gpus) {
    for (const size_t b : gpus) {
      if (a < b && matrix.peer_access[a][b] == PeerAccess::kNo) return true;
    }
  }
  return false;
}

/// Of several NUMA nodes the first: where the CPUs are.
int numa_of(const TopoDevice& device) { return device.numa.empty() ? -1 : device.numa.front(); }

}  // namespace

Shape shape_of(const TopoMatrix& matrix, const std::string& name, const ShapeRates& rates,
               Findings& findings) {
  if (!matrix.has_links() && !matrix.of_kind(TopoDeviceKind::kGpu).empty()) {
    throw_usage(name + ": tells peer access, but not how devices are joined",
                "take the output of `nvidia-smi topo -m`");
  }
  std::vector<size_t> order = matrix.of_kind(TopoDeviceKind::kGpu);
  HostDevices devices;
  devices.gpus = static_cast<int>(order.size());
  if (goes_through_host(matrix, order)) {
    findings.push_back({FindingKind::kAssumed,
                        "hops without peer access get what PCIe carries; through host memory they "
                        "get less (links=LOG takes what was measured)",
                        0});
  }
  for (const size_t nic : matrix.of_kind(TopoDeviceKind::kNic)) order.push_back(nic);
  devices.nics = static_cast<int>(order.size()) - devices.gpus;
  for (const size_t a : order) {
    devices.numa.push_back(numa_of(matrix.devices[a]));
    auto& row = devices.hops.emplace_back();
    for (const size_t b : order) row.push_back(matrix.hops[a][b]);
  }
  HostRates host;
  host.pcie.assign(static_cast<size_t>(devices.gpus), 0);
  host.nic.assign(static_cast<size_t>(devices.nics), 0);
  return ShapeBuilder(rates, findings).build(devices, std::move(host), 0, name);
}

Shape shape_of(const NcclTopology& topology, const std::string& name, const ShapeRates& rates,
               Findings& findings) {
  HostDevices devices;
  devices.gpus = static_cast<int>(topology.gpus.size());
  devices.nics = static_cast<int>(topology.nics.size());
  HostRates host;
  int sm = 0;
  for (const NcclGpu& gpu : topology.gpus) {
    devices.numa.push_back(gpu.numa);
    host.pcie.push_back(gpu.pcie_bytes_per_s);
    sm = gpu.sm;
  }
  for (const NcclNic& nic : topology.nics) {
    devices.numa.push_back(nic.numa);
    host.nic.push_back(nic.bytes_per_s);
  }
  const size_t gpus = topology.gpus.size(), nics = topology.nics.size();
  devices.hops.assign(gpus + nics, std::vector<HopClass>(gpus + nics));
  for (size_t a = 0; a < gpus; ++a) {
    for (size_t b = 0; b < gpus; ++b) devices.hops[a][b] = topology.gpu_hops[a][b];
    for (size_t n = 0; n < nics; ++n) {
      devices.hops[a][gpus + n] = devices.hops[gpus + n][a] = topology.gpu_nic_hops[a][n];
    }
  }
  return ShapeBuilder(rates, findings).build(devices, std::move(host), sm, name);
}

std::string gpu_preset_of(const NcclTopology& topology) {
  int sm = topology.gpus.empty() ? 0 : topology.gpus.front().sm;
  for (const NcclGpu& gpu : topology.gpus) {
    if (gpu.sm != sm) sm = 0;
  }
  return sm == 80 ? "a100" : sm == 90 ? "h100" : sm == 70 ? "v100" : "";
}

}  // namespace ring
