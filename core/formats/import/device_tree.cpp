#include "core/formats/import/device_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace ring {
namespace {

constexpr Picoseconds kMicrosecond = 1'000'000;
// Assumed, as for the named shapes: no file states latencies.
constexpr Picoseconds kNvlinkLatency = 3 * kMicrosecond;
constexpr Picoseconds kDeviceLatency = 4 * kMicrosecond;
constexpr Picoseconds kUpLatency = kMicrosecond;
constexpr Picoseconds kNicLatency = 8 * kMicrosecond;

/// The most NVLinks of any GPU so far.
constexpr int kMostNvlinks = 18;

enum Level { kPix, kPxb, kPhb, kNode, kSys };

/// The PCIe level at which two devices meet; -1 when the file does not tell.
int level_of(const HopClass& hop) {
  switch (hop.kind) {
    case HopKind::kPix:
      return kPix;
    case HopKind::kPxb:
      return kPxb;
    case HopKind::kPcie:
    case HopKind::kPhb:
      return kPhb;
    case HopKind::kNode:
      return kNode;
    case HopKind::kSys:
      return kSys;
    case HopKind::kUnknown:
    case HopKind::kSelf:
    case HopKind::kNvLink:
    case HopKind::kXgmi:
      return -1;
  }
  return -1;
}

class HostBuilder {
 public:
  HostBuilder(const HostDevices& devices, const HostRates& rates, int host, std::string prefix,
              Topology& topology)
      : devices_(devices),
        rates_(rates),
        host_(host),
        prefix_(std::move(prefix)),
        topology_(topology) {}

  std::vector<int> build(std::vector<int>& nics) {
    for (int g = 0; g < devices_.gpus; ++g) nodes_.push_back(add(NodeKind::kGpu, "gpu"));
    for (int n = 0; n < devices_.nics; ++n) nodes_.push_back(add(NodeKind::kNic, "nic"));
    nics.insert(nics.end(), nodes_.begin() + devices_.gpus, nodes_.end());
    add_gpu_links();
    add_pcie();
    return {nodes_.begin(), nodes_.begin() + devices_.gpus};
  }

 private:
  int add(NodeKind kind, const std::string& label) {
    return topology_.add_node(
        {fmt::format("{}{}{}", prefix_, label, counts_[label]++), kind, host_});
  }

  const HopClass& hop(int a, int b) const {
    return devices_.hops[static_cast<size_t>(a)][static_cast<size_t>(b)];
  }

  void add_gpu_links() {
    const bool is_switched = has_nvswitch(devices_);
    int nvswitch = -1;
    for (int a = 0; a < devices_.gpus; ++a) {
      int port = 0;
      for (int b = 0; b < devices_.gpus; ++b) {
        const HopClass& between = hop(a, b);
        const int links = std::max(1, between.links);
        if (between.kind == HopKind::kNvLink) port = std::max(port, links);
        if (b <= a) continue;
        if (between.kind == HopKind::kXgmi) join(a, b, rates_.xgmi * links, "xgmi");
        if (between.kind == HopKind::kNvLink && !is_switched) {
          join(a, b, rates_.nvlink * links, "nvlink");
        }
      }
      if (!is_switched || port == 0) continue;
      if (nvswitch < 0) nvswitch = add(NodeKind::kSwitch, "nvswitch");
      topology_.connect(node(a), nvswitch, rates_.nvlink * port, kNvlinkLatency, "nvlink");
    }
  }

  void join(int a, int b, double bytes_per_s, std::string_view link_class) {
    topology_.connect(node(a), node(b), bytes_per_s, kNvlinkLatency, link_class);
  }

  /// A part of the PCIe tree, by its top.
  struct Part {
    int top = -1;
    int device = -1;  ///< The device that it is, when it is one.
    bool is_host = false;
    bool has_gpu = false;
    bool is_numa = false;
  };

  void add_pcie() {
    std::vector<int> group(static_cast<size_t>(devices_.devices()));
    std::iota(group.begin(), group.end(), 0);
    std::map<int, Part> parts;
    for (int d = 0; d < devices_.devices(); ++d) {
      if (is_placed(d)) parts[d] = {node(d), d, false, d < devices_.gpus};
    }
    for (const Level level : {kPix, kPxb, kPhb, kNode, kSys}) {
      merge_groups(level, group);
      std::map<int, std::vector<Part>> members;
      for (const auto& [key, part] : parts) {
        members[group[static_cast<size_t>(key)]].push_back(part);
      }
      parts.clear();
      for (auto& [key, list] : members) {
        parts[key] = list.size() == 1 ? list.front() : joined(level, std::move(list));
      }
    }
  }

  /// Whether the file says anything about where the device is in the PCIe tree.
  bool is_placed(int device) const {
    if (devices_.numa[static_cast<size_t>(device)] >= 0) return true;
    for (int other = 0; other < devices_.devices(); ++other) {
      if (other != device && level_of(hop(device, other)) >= 0) return true;
    }
    return false;
  }

  /// Devices that meet at this level or below get one group, the smallest device number in it.
  void merge_groups(Level level, std::vector<int>& group) const {
    const auto merge = [&](int a, int b) {
      const int from = std::max(a, b), to = std::min(a, b);
      if (from != to) std::replace(group.begin(), group.end(), from, to);
    };
    for (int a = 0; a < devices_.devices(); ++a) {
      for (int b = a + 1; b < devices_.devices(); ++b) {
        const int met = level_of(hop(a, b));
        const int numa_a = devices_.numa[static_cast<size_t>(a)];
        const int numa_b = devices_.numa[static_cast<size_t>(b)];
        const bool is_same_numa = met < 0 && numa_a >= 0 && numa_a == numa_b;
        const bool is_here = (met >= 0 && met <= level) || (is_same_numa && level >= kNode) ||
                             (level == kSys && is_placed(a) && is_placed(b));
        if (is_here) merge(group[static_cast<size_t>(a)], group[static_cast<size_t>(b)]);
      }
    }
  }

  Part joined(Level level, std::vector<Part> parts) {
    const bool has_gpu =
        std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.has_gpu; });
    switch (level) {
      case kPix:
        return below(add(NodeKind::kPcieSwitch, "pcie"), parts, has_gpu, false);
      case kPxb:
        for (Part& part : parts) {
          if (part.device < 0) continue;
          part = below(add(NodeKind::kPcieSwitch, "pcie"), {part}, part.has_gpu, false);
        }
        return below(add(NodeKind::kPcieSwitch, "pcie"), parts, has_gpu, false);
      case kPhb:
        return below(add(NodeKind::kHost, "bridge"), parts, has_gpu, true);
      case kNode: {
        const int top = add(NodeKind::kHost, "numa");
        for (const Part& part : parts) {
          topology_.connect(with_bridge(part).top, top, rates_.node, kUpLatency, "node");
        }
        return {top, -1, true, has_gpu, true};
      }
      case kSys:
        break;
    }
    // A socket with one bridge is as far from the others as those with several.
    const bool has_numa =
        std::any_of(parts.begin(), parts.end(), [](const Part& part) { return part.is_numa; });
    std::vector<Part> sockets;
    for (const Part& part : parts) {
      sockets.push_back(has_numa && !part.is_numa ? joined(kNode, {part}) : with_bridge(part));
      for (size_t s = 0; s + 1 < sockets.size(); ++s) {
        topology_.connect(sockets[s].top, sockets.back().top, rates_.socket, kUpLatency, "socket");
      }
    }
    return {sockets.front().top, -1, true, has_gpu};
  }

  Part below(int top, const std::vector<Part>& parts, bool has_gpu, bool is_host) {
    for (const Part& part : parts) hang(part, top);
    return {top, -1, is_host, has_gpu};
  }

  void hang(const Part& part, int top) {
    if (part.device >= devices_.gpus) {
      topology_.connect(part.top, top, rates_.nic[static_cast<size_t>(part.device - devices_.gpus)],
                        kNicLatency, "nic");
    } else {
      topology_.connect(part.top, top, pcie_of(part), part.device < 0 ? kUpLatency : kDeviceLatency,
                        "pcie");
    }
  }

  Part with_bridge(const Part& part) {
    if (part.is_host) return part;
    return below(add(NodeKind::kHost, "bridge"), {part}, part.has_gpu, true);
  }

  /// Of a GPU its own rate; of a switch the greatest of all.
  double pcie_of(const Part& part) const {
    if (part.device >= 0) return rates_.pcie[static_cast<size_t>(part.device)];
    return *std::max_element(rates_.pcie.begin(), rates_.pcie.end());
  }

  int node(int device) const { return nodes_[static_cast<size_t>(device)]; }

  const HostDevices& devices_;
  const HostRates& rates_;
  const int host_;
  const std::string prefix_;
  Topology& topology_;
  std::vector<int> nodes_;
  std::map<std::string, int> counts_;
};

}  // namespace

bool has_nvswitch(const HostDevices& devices) {
  for (int a = 0; a < devices.gpus; ++a) {
    int links = 0;
    for (int b = 0; b < devices.gpus; ++b) {
      const HopClass& hop = devices.hops[static_cast<size_t>(a)][static_cast<size_t>(b)];
      if (a != b && hop.kind == HopKind::kNvLink) links += std::max(1, hop.links);
    }
    if (links > kMostNvlinks) return true;
  }
  return false;
}

std::vector<int> add_host(const HostDevices& devices, const HostRates& rates, int host,
                          const std::string& prefix, Topology& topology, std::vector<int>& nics) {
  return HostBuilder(devices, rates, host, prefix, topology).build(nics);
}

}  // namespace ring
