// DeviceTree: the devices of a host and how they are joined, and the topology built of them.
#pragma once

#include <string>
#include <vector>

#include "core/formats/import/hop_class.h"
#include "core/topology.h"

namespace ring {

/// GPUs first, then NICs.
struct HostDevices {
  int gpus = 0, nics = 0;
  std::vector<std::vector<HopClass>> hops;  ///< [device][device].
  std::vector<int> numa;                    ///< Of each device; -1: not known.
  int devices() const { return gpus + nics; }
};

/// Bytes per second of one direction.
struct HostRates {
  double nvlink = 0, xgmi = 0;  ///< Of one link.
  std::vector<double> pcie;     ///< Of each GPU.
  std::vector<double> nic;
  double node = 0, socket = 0;
};

/// Whether the NVLinks of some GPU are more than it has ports, so that they end in a switch.
bool has_nvswitch(const HostDevices& devices);

/// Adds host number `host` and returns its GPUs; `prefix` stands before the names of nodes, `nics`
/// gets the nodes of its NICs.
std::vector<int> add_host(const HostDevices& devices, const HostRates& rates, int host,
                          const std::string& prefix, Topology& topology, std::vector<int>& nics);

}  // namespace ring
