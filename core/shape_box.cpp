#include "core/shape_box.h"

#include <fmt/format.h>

#include <string>

#include "core/error.h"

namespace ring {
namespace {

class ClusterBuilder {
 public:
  ClusterBuilder(const BoxSpec& box, const NetworkSpec& network) : box_(box), network_(network) {}

  Cluster build() {
    if (network_.nodes > 1 && box_.nics == 0) {
      throw_usage("several nodes, but no NIC to join them", "give nics=1 or more");
    }
    if (network_.nodes > 1) add_rails();
    for (int host = 0; host < network_.nodes; ++host) add_box(host);
    return std::move(cluster_);
  }

 private:
  int add(const std::string& label, NodeKind kind, int host) {
    return cluster_.topology.add_node({label, kind, host});
  }

  std::string label(int host, std::string_view part) const {
    return network_.nodes == 1 ? std::string(part) : fmt::format("node{}.{}", host, part);
  }

  void add_rails() {
    for (int rail = 0; rail < box_.nics; ++rail) {
      rails_.push_back(add(fmt::format("rail{}", rail), NodeKind::kSwitch, -1));
    }
    if (box_.nics == 1) return;
    const int spine = add("spine", NodeKind::kSwitch, -1);
    const double up = box_.nic_bytes_per_s * network_.nodes / network_.oversubscription;
    for (const int rail : rails_) cluster_.topology.connect(rail, spine, up, 0, "network");
  }

  void add_box(int host) {
    std::vector<int> gpus;
    for (int g = 0; g < box_.gpus; ++g) {
      gpus.push_back(add(label(host, fmt::format("gpu{}", g)), NodeKind::kGpu, host));
    }
    int nvswitch = -1;
    if (box_.nvlink_bytes_per_s > 0) {
      nvswitch = add(label(host, "nvswitch"), NodeKind::kSwitch, host);
      for (const int gpu : gpus) {
        cluster_.topology.connect(gpu, nvswitch, box_.nvlink_bytes_per_s, box_.nvlink_latency_ps,
                                  "nvlink");
      }
    }
    for (const auto& [a, b, links] : box_.mesh) {
      cluster_.topology.connect(gpus[static_cast<size_t>(a)], gpus[static_cast<size_t>(b)],
                                box_.mesh_link_bytes_per_s * links, box_.nvlink_latency_ps,
                                "nvlink");
    }
    if (box_.pcie_bytes_per_s > 0) {
      add_pcie(host, gpus);
    } else {
      add_nics_without_pcie(host, gpus, nvswitch);
    }
    cluster_.gpus.insert(cluster_.gpus.end(), gpus.begin(), gpus.end());
  }

  /// One NIC hangs on the switch of all GPUs; of several each has a port of its own for the GPUs
  /// nearest to it, so that no route takes the NIC of others.
  void add_nics_without_pcie(int host, const std::vector<int>& gpus, int nvswitch) {
    if (box_.nics == 1) return add_nic(host, 0, nvswitch);
    for (int n = 0; n < box_.nics; ++n) {
      const int port = add(label(host, fmt::format("port{}", n)), NodeKind::kSwitch, host);
      for (int g = 0; g < box_.gpus; ++g) {
        if (g * box_.nics / box_.gpus != n) continue;
        cluster_.topology.connect(gpus[static_cast<size_t>(g)], port, box_.nvlink_bytes_per_s,
                                  box_.nvlink_latency_ps, "nvlink");
      }
      add_nic(host, n, port);
    }
  }

  void add_pcie(int host, const std::vector<int>& gpus) {
    std::vector<int> sockets;
    for (int s = 0; s < box_.sockets; ++s) {
      sockets.push_back(add(label(host, fmt::format("socket{}", s)), NodeKind::kHost, host));
      if (s > 0) {
        cluster_.topology.connect(sockets[0], sockets.back(), box_.socket_bytes_per_s,
                                  box_.socket_latency_ps, "socket");
      }
    }
    const int count = (box_.gpus + box_.gpus_per_pcie_switch - 1) / box_.gpus_per_pcie_switch;
    std::vector<int> switches;
    for (int p = 0; p < count; ++p) {
      switches.push_back(add(label(host, fmt::format("pcie{}", p)), NodeKind::kPcieSwitch, host));
      connect_pcie(switches.back(), sockets[static_cast<size_t>(p * box_.sockets / count)]);
    }
    for (int g = 0; g < box_.gpus; ++g) {
      connect_pcie(gpus[static_cast<size_t>(g)],
                   switches[static_cast<size_t>(g / box_.gpus_per_pcie_switch)]);
    }
    for (int n = 0; n < box_.nics; ++n) {
      add_nic(host, n, switches[static_cast<size_t>(n * count / box_.nics)]);
    }
  }

  void connect_pcie(int a, int b) {
    cluster_.topology.connect(a, b, box_.pcie_bytes_per_s, box_.pcie_latency_ps, "pcie");
  }

  void add_nic(int host, int number, int at) {
    const int nic = add(label(host, fmt::format("nic{}", number)), NodeKind::kNic, host);
    cluster_.topology.connect(at, nic, box_.nic_bytes_per_s, box_.nic_latency_ps, "nic");
    if (!rails_.empty()) {
      cluster_.topology.connect(nic, rails_[static_cast<size_t>(number)], box_.nic_bytes_per_s, 0,
                                "nic");
    }
  }

  const BoxSpec& box_;
  const NetworkSpec& network_;
  Cluster cluster_;
  std::vector<int> rails_;
};

}  // namespace

Cluster build_cluster(const BoxSpec& box, const NetworkSpec& network) {
  return ClusterBuilder(box, network).build();
}

}  // namespace ring
