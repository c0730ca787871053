// Topologies from files of others, as machines: links from the file, costs from a GPU or a profile.
#pragma once

#include <string>

#include "core/formats/findings.h"
#include "core/machine.h"

namespace ring {

/// A machine whose links come from a topology file, and what was found and assumed on the way.
struct TopologyMachine {
  Machine machine;
  Findings findings;
  bool has_gpu_assumed = false;  ///< Neither file nor text says which GPU it is.
};

/// Whether `text` is the path of a topology that can be read (topology matrix, topology file of
/// NCCL or RCCL, topology in TOML), perhaps with ":key=value,..." behind it.
bool is_topology_file(const std::string& text);

/// The path of such a text, without its keys; empty when there is no such file.
std::string topology_path(const std::string& text);

/// Keys: gpu=a100|h100|v100 or costs=MACHINE (costs of computation; default: what the file says,
/// else a100 and said so), nodes=N (so many hosts on rails), nvlink= xgmi= pcie= nic= (rates of one
/// link, one device, one NIC), links=LOG (a link test whose figures replace those of the links it
/// measured), order=0-3-2-1. Throws Error(kUsage).
TopologyMachine read_topology_machine(const std::string& text);

/// Replaces bandwidth and latency of the links that a link test measured: between GPUs of a host
/// (the class of links next to GPUs that is fastest), or NICs when it crossed hosts. The widest hop
/// of that class gets the measured figures, others are scaled with it.
void apply_link_test(const std::string& path, Machine& machine, Findings& findings);

}  // namespace ring
