#include "experiments/machine_library/machine_library.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/topology_shapes.h"
#include "experiments/machine_library/kernel_families.h"
#include "experiments/machine_library/link_costs.h"

namespace ring {
namespace {

/// How the nodes of a machine are joined.
enum class Network { kNone, kNdr, kHdr, kRoce, kTcp };

struct MachineSpec {
  std::string_view name;
  std::string_view gpu;
  std::string_view shape;  ///< Of core/topology_shapes.h.
  Network network = Network::kNone;
};

constexpr MachineSpec kMachines[] = {
    {"a100-pcie-4", "a100-pcie", "pcie-box:gpus=4,nics=0"},
    {"a100-pcie-8", "a100-pcie", "pcie-box:gpus=8,nics=0"},
    {"a100-sxm-8", "a100-sxm", "dgx-a100:nics=0"},
    {"a100-sxm-16-ib", "a100-sxm", "dgx-a100:nodes=2", Network::kHdr},
    {"a100-sxm-128-ib", "a100-sxm", "dgx-a100:nodes=16", Network::kHdr},
    {"a800-sxm-8", "a800-sxm", "dgx-a100:nics=0"},
    {"a800-sxm-32-ib", "a800-sxm", "dgx-a100:nodes=4", Network::kHdr},
    {"h100-500w-8", "h100-500w", "hgx-h100:nics=0"},
    {"h100-500w-32-ib", "h100-500w", "hgx-h100:nodes=4", Network::kNdr},
    {"h100-sxm-8", "h100-sxm", "hgx-h100:nics=0"},
    {"h100-sxm-16-ib", "h100-sxm", "hgx-h100:nodes=2", Network::kNdr},
    {"h100-sxm-16-roce", "h100-sxm", "hgx-h100:nodes=2", Network::kRoce},
    {"h100-sxm-128-ib", "h100-sxm", "hgx-h100:nodes=16", Network::kNdr},
    {"h100-sxm-128-roce", "h100-sxm", "hgx-h100:nodes=16", Network::kRoce},
    {"h200-sxm-8", "h200-sxm", "hgx-h100:nics=0"},
    {"h800-sxm-8", "h800-sxm", "hgx-h100:nics=0"},
    {"l20-8", "l20", "pcie-box:gpus=8,nics=0"},
};

// What no published sweep states, and is derived.
constexpr double kShareOfMemoryRate = 0.8;
constexpr double kCopyLaunch = 4e-6;
constexpr double kWakeup = 2e-6;  // From an event to the stream that waits for it.
/// Without peer access messages go through host memory, once in and once out, copied by SMs that
/// reach about half of the line rate.
constexpr double kShareOfStagedPcie = 0.25;
constexpr double kStagedStart = 20e-6;
constexpr double kRunNoise = 0.04, kOpNoise = 0.02;

Picoseconds half_of(double seconds) { return picoseconds_from_seconds(seconds / 2); }

LinkCost nic_of(const LinkCosts& costs, Network network) {
  LinkCost nic = costs.ndr_nic;
  nic.is_fitted = network == Network::kNdr;
  switch (network) {
    case Network::kNone:
    case Network::kNdr:
      break;
    case Network::kHdr:
      nic.cost.bytes_per_s = costs.hdr_bytes_per_s;
      nic.source = "nccl-links: what a 200 Gb/s NIC is expected to reach; start as on NDR";
      break;
    case Network::kRoce:
      nic.cost.bytes_per_s = costs.roce_bytes_per_s;
      nic.source =
          "nccl-links: an eighth of an all-reduce over 8 RoCE NICs of 400 Gb/s, which its "
          "reporter calls low; start as on NDR";
      break;
    case Network::kTcp:
      nic.cost.bytes_per_s = 3e9;
      nic.source = "assumed";
      break;
  }
  return nic;
}

/// Puts the cost of a message over a class of links onto the links of the route: half the start at
/// each end.
void set_class(Topology& topology, std::string_view link_class, const LinkCost& link) {
  for (Link& each : topology.mutable_links()) {
    if (each.link_class != link_class) continue;
    each.bytes_per_s = link.cost.bytes_per_s;
    each.latency_ps = half_of(link.cost.start_s);
    each.is_calibrated = link.is_fitted;
  }
}

/// The NIC's start is paid at the two ends that face the GPUs; what lies behind is free of it.
void set_network(Topology& topology, const LinkCost& nic, double pcie_bytes_per_s) {
  const std::vector<Node> nodes = topology.nodes();
  for (Link& each : topology.mutable_links()) {
    const bool is_rail = nodes[static_cast<size_t>(each.from)].kind == NodeKind::kSwitch ||
                         nodes[static_cast<size_t>(each.to)].kind == NodeKind::kSwitch;
    if (each.link_class == "nic") {
      each.bytes_per_s = nic.cost.bytes_per_s;
      each.latency_ps = is_rail ? 0 : half_of(nic.cost.start_s);
      each.is_calibrated = nic.is_fitted;
    } else if (each.link_class == "pcie") {
      each.bytes_per_s = pcie_bytes_per_s;
      each.latency_ps = 0;
    }
  }
}

void set_links(const MachineSpec& spec, const GpuSpec& gpu, const LinkCosts& costs,
               Machine& machine) {
  Topology& topology = machine.topology;
  if (gpu.nvlink_bytes_per_s > 0) {
    const LinkCost nvlink = nvlink_of(costs, gpu);
    set_class(topology, "nvlink", nvlink);
    machine.provenance["link nvlink"] = nvlink.source;
    if (spec.network != Network::kNone) {
      const LinkCost nic = nic_of(costs, spec.network);
      set_network(topology, nic, gpu.pcie_bytes_per_s);
      machine.provenance["link nic"] = nic.source;
      machine.trusted["nic_message_bytes"] = {1024, 268435456};
    } else {
      machine.provenance.erase("link nic");
      machine.provenance.erase("link pcie");
    }
    machine.trusted["nvlink_message_bytes"] = {8, 1073741824};
  } else {
    const LinkCost staged{{kStagedStart, kShareOfStagedPcie * gpu.pcie_bytes_per_s}, false, {}};
    set_class(topology, "pcie", staged);
    machine.provenance["link pcie"] =
        "assumed: a quarter of PCIe 4.0 x16, messages staged through host memory; no calibration "
        "file has such a link; start assumed";
    machine.provenance.erase("link nic");
  }
  machine.provenance["latency"] = "half the start of a message at each end";
}

/// SMs that NCCL's send and receive kernels hold: a thread block per channel, and for a peer over
/// NVLink twice as many channels as links, rounded up to a power of two, at most 32
/// (ncclTopoComputeP2pChannels); two for other peers.
int channels_to_peer(const MachineSpec& spec, const GpuSpec& gpu) {
  constexpr double kLinkBytesPerSecond = 25e9;
  constexpr int kMost = 32, kOtherPeers = 2;
  if (gpu.nvlink_bytes_per_s <= 0 || spec.network != Network::kNone) return kOtherPeers;
  const int wanted = static_cast<int>(2 * gpu.nvlink_bytes_per_s / kLinkBytesPerSecond);
  int channels = 1;
  while (channels < wanted) channels *= 2;
  return std::min(channels, kMost);
}

void set_interference(const MachineSpec& spec, const GpuSpec& gpu, Machine& machine) {
  const int channels = channels_to_peer(spec, gpu);
  machine.attend_slowdown_by_transfer =
      static_cast<double>(gpu.multiprocessors) / (gpu.multiprocessors - channels);
  machine.provenance["interference"] = fmt::format(
      "derived: NCCL's {} channels to a peer hold as many of the {} SMs while a transfer runs{}",
      channels, gpu.multiprocessors,
      spec.network == Network::kNone ? "" : "; hops between nodes, which take longest");
}

void set_kernels(const KernelKnowledge& known, Machine& machine) {
  machine.kernels = known.families;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    machine.attend[dtype] = {};
    machine.backward[dtype] = {};
  }
  select_kernels(machine, known.default_family);
  machine.context["kernels"] = known.default_family;
  for (const auto& [what, source] : known.provenance) machine.provenance[what] = source;
  machine.provenance["launch"] =
      "fitted with the kernels: what a call takes beyond its tiles, launches included";
  machine.trusted["head_dim"] = {64, known.default_family == "cudnn" ? 128.0 : 256.0};
  machine.trusted["head_dim_v"] = machine.trusted["head_dim"];
  machine.trusted["block_tokens"] = {512, 131072};
}

/// The samples and the fit of a link that the machine has.
void keep_link(const std::string& probe, const Calibration& from, Calibration& to) {
  for (const CalibrationSample& sample : from.samples) {
    if (sample.probe == probe) to.samples.push_back(sample);
  }
  for (const char* parameter : {".start_s", ".bytes_per_s"}) {
    to.parameters[probe + parameter] = from.parameters.at(probe + parameter);
  }
  to.fits[probe] = from.fits.at(probe);
}

MachineFile build(const MachineSpec& spec, const KernelFamilies& families, const LinkCosts& costs) {
  const GpuSpec& gpu = gpu_spec(spec.gpu);
  Shape shape = make_shape(spec.shape);
  MachineFile file;
  Machine& machine = file.machine;
  machine.name = spec.name;
  machine.topology = std::move(shape.topology);
  machine.processors = std::move(shape.processors);
  machine.provenance = std::move(shape.provenance);
  machine.context["gpu"] = gpu.model;
  machine.context["shape"] = spec.shape;
  const KernelKnowledge known = families.of(gpu);
  set_kernels(known, machine);
  set_links(spec, gpu, costs, machine);
  set_interference(spec, gpu, machine);
  const double memory = kShareOfMemoryRate * gpu.memory_bytes_per_s;
  machine.copy = {kCopyLaunch, memory / 2};
  machine.merge_bytes_per_s = memory;
  machine.wakeup_s = kWakeup;
  machine.memory_capacity_bytes = gpu.memory_bytes;
  machine.noise = {kOpNoise, kRunNoise};
  machine.provenance["memory"] = "datasheet, of which streaming kernels reach 0.8 (assumed)";
  machine.provenance["merge"] = "derived: bytes over the reachable memory rate";
  machine.provenance["wakeup"] = "assumed: 2 us from an event to the waiting stream";
  machine.provenance["noise"] = "published repeats on one cluster spread 0.4 to 6 %";
  file.calibration = known.calibration;
  if (spec.network != Network::kNone) {
    file.calibration.samples.clear();  // Kept once, with the machine of one node.
    machine.context["samples"] = "of the kernels: in the file of the machine with one node";
  }
  if (gpu.name == "a100-sxm") keep_link("nvlink", costs.calibration, file.calibration);
  if (spec.network == Network::kNdr) keep_link("nic", costs.calibration, file.calibration);
  return file;
}

}  // namespace

std::vector<MachineFile> build_machine_library(const std::string& published) {
  const KernelFamilies families(published);
  const LinkCosts costs = fit_links(published);
  std::vector<MachineFile> files;
  for (const MachineSpec& spec : kMachines) files.push_back(build(spec, families, costs));
  return files;
}

}  // namespace ring
