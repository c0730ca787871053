#include "core/topology_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/error.h"
#include "core/shape_box.h"
#include "core/shape_options.h"

namespace ring {
namespace {

constexpr Picoseconds kMicrosecond = 1'000'000;
constexpr int kMostNodes = 1 << 20;

// Assumed everywhere: no datasheet states latencies. The NIC's is half the small-message time of
// NCCL send/receive over 400 Gb/s InfiniBand, about 25 us in published sweeps.
constexpr Picoseconds kNvlinkLatency = 3 * kMicrosecond;
constexpr Picoseconds kPcieLatency = 4 * kMicrosecond;
constexpr Picoseconds kSocketLatency = 1 * kMicrosecond;
constexpr Picoseconds kNicLatency = 8 * kMicrosecond;

constexpr double kPcie3 = 15.75e9;  // 8 GT/s x 16 lanes, 128b/130b
constexpr double kPcie4 = 31.5e9;
constexpr double kPcie5 = 63e9;

constexpr std::string_view kPcieSource =
    "PCI Express base specification: x16 lanes times the line rate, 128b/130b";
constexpr std::string_view kLatencySource = "assumed; datasheets state no latencies";

BoxSpec dgx_a100() {
  BoxSpec box;
  box.nvlink_bytes_per_s = 300e9;
  box.nvlink_latency_ps = kNvlinkLatency;
  box.pcie_bytes_per_s = kPcie4;
  box.pcie_latency_ps = kPcieLatency;
  box.socket_bytes_per_s = 128e9;
  box.socket_latency_ps = kSocketLatency;
  box.nics = 8;
  box.nic_bytes_per_s = 25e9;
  box.nic_latency_ps = kNicLatency;
  return box;
}

BoxSpec hgx_h100() {
  BoxSpec box = dgx_a100();
  box.nvlink_bytes_per_s = 450e9;
  box.pcie_bytes_per_s = kPcie5;
  box.socket_bytes_per_s = 192e9;
  box.nic_bytes_per_s = 50e9;
  return box;
}

BoxSpec dgx_1v() {
  BoxSpec box;
  box.mesh = {{0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 5, 2}, {2, 3, 2}, {4, 7, 2},
              {5, 6, 2}, {6, 7, 2}, {0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 6, 1},
              {3, 7, 1}, {4, 5, 1}, {4, 6, 1}, {5, 7, 1}};
  box.mesh_link_bytes_per_s = 25e9;
  box.nvlink_latency_ps = kNvlinkLatency;
  box.pcie_bytes_per_s = kPcie3;
  box.pcie_latency_ps = kPcieLatency;
  box.gpus_per_pcie_switch = 2;
  box.socket_bytes_per_s = 41.6e9;
  box.socket_latency_ps = kSocketLatency;
  box.nics = 4;
  box.nic_bytes_per_s = 12.5e9;
  box.nic_latency_ps = kNicLatency;
  return box;
}

BoxSpec pcie_box() {
  BoxSpec box;
  box.pcie_bytes_per_s = kPcie4;
  box.pcie_latency_ps = kPcieLatency;
  box.gpus_per_pcie_switch = 2;
  box.socket_bytes_per_s = 128e9;
  box.socket_latency_ps = kSocketLatency;
  box.nics = 1;
  box.nic_bytes_per_s = 12.5e9;
  box.nic_latency_ps = kNicLatency;
  return box;
}

Shape finish(Cluster cluster, ShapeOptions& options) {
  Shape shape;
  for (const int at : options.order(static_cast<int>(cluster.gpus.size()))) {
    shape.processors.push_back(cluster.gpus[static_cast<size_t>(at)]);
  }
  shape.topology = std::move(cluster.topology);
  return shape;
}

NetworkSpec network_of(ShapeOptions& options) {
  NetworkSpec network;
  network.nodes = options.count("nodes", 1, 1, kMostNodes);
  network.oversubscription = options.count("oversubscription", 1, 1, 64);
  return network;
}

Shape boxes(BoxSpec box, ShapeOptions& options, std::string_view nvlink_source) {
  box.nics = options.count("nics", box.nics, 0, box.gpus);
  box.nvlink_bytes_per_s =
      box.nvlink_bytes_per_s > 0 ? options.bandwidth("nvlink", box.nvlink_bytes_per_s) : 0;
  box.pcie_bytes_per_s = options.bandwidth("pcie", box.pcie_bytes_per_s);
  box.nic_bytes_per_s = options.bandwidth("nic", box.nic_bytes_per_s);
  box.nic_latency_ps = options.latency("nic-latency", box.nic_latency_ps);
  Shape shape = finish(build_cluster(box, network_of(options)), options);
  if (!nvlink_source.empty()) shape.provenance["link nvlink"] = nvlink_source;
  shape.provenance["link pcie"] = kPcieSource;
  shape.provenance["link nic"] = "NIC datasheet, line rate of one port";
  shape.provenance["latency"] = kLatencySource;
  return shape;
}

Shape make_dgx_a100(ShapeOptions& options) {
  return boxes(dgx_a100(), options,
               "NVIDIA A100 datasheet: 12 NVLink 3 of 25 GB/s each way, NVSwitch non-blocking");
}

Shape make_hgx_h100(ShapeOptions& options) {
  return boxes(hgx_h100(), options,
               "NVIDIA H100 datasheet: 18 NVLink 4 of 25 GB/s each way, NVSwitch non-blocking");
}

Shape make_dgx_1v(ShapeOptions& options) {
  return boxes(dgx_1v(), options,
               "NVIDIA V100 datasheet: 6 NVLink 2 of 25 GB/s each way, cube mesh");
}

Shape make_pcie_box(ShapeOptions& options) {
  BoxSpec box = pcie_box();
  box.gpus = options.count("gpus", box.gpus, 1, 64);
  return boxes(box, options, {});
}

Shape make_cluster(ShapeOptions& options) {
  BoxSpec box;
  box.gpus = options.count("gpus", 8, 1, 1024);
  box.nvlink_bytes_per_s = options.bandwidth("gpu-bandwidth", 300e9);
  box.nvlink_latency_ps = options.latency("gpu-latency", kMicrosecond);
  box.nics = options.count("nics", 1, 0, box.gpus);
  box.nic_bytes_per_s = options.bandwidth("nic-bandwidth", 25e9);
  box.nic_latency_ps = options.latency("nic-latency", 5 * kMicrosecond / 2);
  Shape shape = finish(build_cluster(box, network_of(options)), options);
  shape.provenance["links"] = "as given";
  return shape;
}

struct LinkOptions {
  double bytes_per_s;
  Picoseconds latency_ps;
  bool is_half_duplex;
};

LinkOptions link_options(ShapeOptions& options) {
  return {options.bandwidth("bandwidth", 25e9), options.latency("latency", 5 * kMicrosecond),
          options.flag("half-duplex", false)};
}

Cluster bare_gpus(int count) {
  Cluster cluster;
  for (int g = 0; g < count; ++g) {
    cluster.gpus.push_back(cluster.topology.add_node({fmt::format("gpu{}", g), NodeKind::kGpu, g}));
  }
  return cluster;
}

void join(Cluster& cluster, int a, int b, const LinkOptions& link) {
  cluster.topology.connect(cluster.gpus[static_cast<size_t>(a)],
                           cluster.gpus[static_cast<size_t>(b)], link.bytes_per_s, link.latency_ps,
                           "network", link.is_half_duplex);
}

Shape make_ring(ShapeOptions& options) {
  const int ranks = options.count("ranks", 8, 1, kMostNodes);
  const LinkOptions link = link_options(options);
  Cluster cluster = bare_gpus(ranks);
  for (int r = 0; r + 1 < ranks; ++r) join(cluster, r, r + 1, link);
  if (ranks > 2) join(cluster, ranks - 1, 0, link);
  return finish(std::move(cluster), options);
}

/// Ranks go row by row, every other row backwards, so that neighbours on the ring are neighbours on
/// the torus wherever the number of rows is even.
Shape make_torus(ShapeOptions& options) {
  const int rows = options.count("rows", 4, 1, 4096);
  const int columns = options.count("columns", 4, 1, 4096);
  const LinkOptions link = link_options(options);
  Cluster cluster = bare_gpus(rows * columns);
  const auto at = [&](int row, int column) {
    return row * columns + (row % 2 == 0 ? column : columns - 1 - column);
  };
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const bool wraps_row = c + 1 == columns, wraps_column = r + 1 == rows;
      if (!wraps_row || columns > 2) join(cluster, at(r, c), at(r, (c + 1) % columns), link);
      if (!wraps_column || rows > 2) join(cluster, at(r, c), at((r + 1) % rows, c), link);
    }
  }
  return finish(std::move(cluster), options);
}

/// Traffic spreads evenly over parallel spines, so they are drawn as one node of their capacity.
Shape make_leaf_spine(ShapeOptions& options) {
  const int leaves = options.count("leaves", 4, 1, 65536);
  const int hosts = options.count("hosts", 8, 1, 4096);
  const int spines = options.count("spines", 8, 1, 4096);
  const LinkOptions link = link_options(options);
  const double up = options.bandwidth("uplink", link.bytes_per_s);
  Cluster cluster = bare_gpus(leaves * hosts);
  const int spine = cluster.topology.add_node({"spine", NodeKind::kSwitch, -1});
  for (int l = 0; l < leaves; ++l) {
    const int leaf = cluster.topology.add_node({fmt::format("leaf{}", l), NodeKind::kSwitch, -1});
    cluster.topology.connect(leaf, spine, up * spines, link.latency_ps, "network");
    for (int h = 0; h < hosts; ++h) {
      cluster.topology.connect(cluster.gpus[static_cast<size_t>(l * hosts + h)], leaf,
                               link.bytes_per_s, link.latency_ps, "network", link.is_half_duplex);
    }
  }
  return finish(std::move(cluster), options);
}

/// k-ary fat tree: k pods of k/2 edge switches with k/2 hosts each; parallel switches of a level
/// are drawn as one node, as above.
Shape make_fat_tree(ShapeOptions& options) {
  const int k = options.count("k", 4, 2, 128);
  if (k % 2 != 0) throw_usage(fmt::format("shape 'fat-tree': k is {}, it must be even", k));
  const LinkOptions link = link_options(options);
  const int half = k / 2;
  Cluster cluster = bare_gpus(k * half * half);
  const int core = cluster.topology.add_node({"core", NodeKind::kSwitch, -1});
  for (int p = 0; p < k; ++p) {
    const int pod = cluster.topology.add_node({fmt::format("pod{}", p), NodeKind::kSwitch, -1});
    cluster.topology.connect(pod, core, link.bytes_per_s * half * half, link.latency_ps, "network");
    for (int e = 0; e < half; ++e) {
      const int edge =
          cluster.topology.add_node({fmt::format("pod{}.edge{}", p, e), NodeKind::kSwitch, -1});
      cluster.topology.connect(edge, pod, link.bytes_per_s * half, link.latency_ps, "network");
      for (int h = 0; h < half; ++h) {
        cluster.topology.connect(cluster.gpus[static_cast<size_t>((p * half + e) * half + h)], edge,
                                 link.bytes_per_s, link.latency_ps, "network", link.is_half_duplex);
      }
    }
  }
  return finish(std::move(cluster), options);
}

struct ShapeEntry {
  ShapeInfo info;
  Shape (*make)(ShapeOptions&);
};

constexpr std::string_view kBoxOptions =
    "nodes=1 nics oversubscription=1 nvlink pcie nic nic-latency";

constexpr std::array<ShapeEntry, 9> kShapes{{
    {{"dgx-a100", "8 A100 on NVSwitch, a 200 Gb/s NIC per GPU, one rail per NIC", kBoxOptions},
     make_dgx_a100},
    {{"hgx-h100", "8 H100 on NVSwitch, a 400 Gb/s NIC per GPU, one rail per NIC", kBoxOptions},
     make_hgx_h100},
    {{"dgx-1v", "8 V100 in an NVLink cube mesh, 4 NICs of 100 Gb/s", kBoxOptions}, make_dgx_1v},
    {{"pcie-box", "GPUs on PCIe switches of two sockets, one NIC", "gpus=8 and those of dgx-a100"},
     make_pcie_box},
    {{"cluster", "nodes of GPUs on a non-blocking switch, with NICs on it",
      "nodes=1 gpus=8 nics=1 gpu-bandwidth=300GB/s gpu-latency=1us nic-bandwidth=25GB/s "
      "nic-latency=2.5us oversubscription=1"},
     make_cluster},
    {{"ring", "ranks joined to their neighbours",
      "ranks=8 bandwidth=25GB/s latency=5us half-duplex=no"},
     make_ring},
    {{"torus", "a two-dimensional torus",
      "rows=4 columns=4 bandwidth=25GB/s latency=5us half-duplex=no"},
     make_torus},
    {{"leaf-spine", "hosts under leaf switches under spines",
      "leaves=4 hosts=8 spines=8 uplink=(bandwidth)"
      " bandwidth=25GB/s latency=5us half-duplex=no"},
     make_leaf_spine},
    {{"fat-tree", "a k-ary fat tree of k^3/4 hosts",
      "k=4 bandwidth=25GB/s latency=5us half-duplex=no"},
     make_fat_tree},
}};

}  // namespace

std::span<const ShapeInfo> all_shapes() {
  static constexpr auto kInfos = [] {
    std::array<ShapeInfo, kShapes.size()> infos{};
    for (size_t i = 0; i < infos.size(); ++i) infos[i] = kShapes[i].info;
    return infos;
  }();
  return kInfos;
}

bool is_shape_name(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  for (const ShapeEntry& entry : kShapes) {
    if (entry.info.name == name) return true;
  }
  return false;
}

Shape make_shape(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  std::vector<std::string_view> names;
  for (const ShapeEntry& entry : kShapes) {
    names.push_back(entry.info.name);
    if (entry.info.name != name) continue;
    ShapeOptions options(name, colon == std::string_view::npos ? "" : text.substr(colon + 1));
    Shape shape = entry.make(options);
    options.require_all_used();
    shape.name = text;
    return shape;
  }
  const std::string near = nearest_spelling(name, names.data(), static_cast<int>(names.size()));
  throw_usage(fmt::format("there is no topology shape '{}'{}", name,
                          near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
              fmt::format("shapes are {}", fmt::join(names, ", ")));
}

}  // namespace ring
