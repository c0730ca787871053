#include "kernels/host_facts.h"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "core/build_info.h"
#include "kernels/cuda/cuda_device.h"

namespace ring {

namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using TopologyHandle = std::unique_ptr<hwloc_topology, TopologyDeleter>;

TopologyHandle load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  TopologyHandle handle(topology);
  return hwloc_topology_load(topology) == 0 ? std::move(handle) : nullptr;
}

int count_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int count = hwloc_get_nbobjs_by_type(topology, type);
  return count < 0 ? 0 : count;
}

std::vector<CacheFact> caches_of(hwloc_topology_t topology) {
  std::vector<CacheFact> caches;
  int level = 1;
  for (const auto type : {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE}) {
    const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
    if (cache != nullptr) {
      const int cores =
          hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE);
      caches.push_back({level, static_cast<Bytes>(cache->attr->cache.size), cores});
    }
    ++level;
  }
  return caches;
}

/// The text after "KEY :" in a file of such lines, or "".
std::string value_after(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return colon == std::string::npos || begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

Bytes memory_line(const std::string& key) {
  const std::string text = value_after("/proc/meminfo", key);
  return text.empty() ? 0 : std::strtoll(text.c_str(), nullptr, 10) * 1024;
}

PartFact gpu_fact() {
  namespace fs = std::filesystem;
  const fs::path folder = "/proc/driver/nvidia/gpus";
  std::error_code ignored;
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    models.push_back(value_after((entry.path() / "information").c_str(), "Model"));
  }
  if (models.empty()) return {"GPU", false, "no NVIDIA driver or device"};
  return {"GPU", true, fmt::format("{} x {}", models.size(), models.front())};
}

PartFact build_fact(const BuildPart& part) {
  if (part.found == "off") return {std::string(part.name), false, "left out of this build"};
  if (part.found != "missing") return {std::string(part.name), true, std::string(part.found)};
  return {std::string(part.name), false,
          fmt::format("not found by the build: {}", part.cost_when_missing)};
}

}  // namespace

HostFacts detect_host() {
  HostFacts facts;
  facts.processor = value_after("/proc/cpuinfo", "model name");
  if (facts.processor.empty()) facts.processor = "unknown";
  facts.memory_bytes = memory_line("MemTotal");
  facts.available_bytes = memory_line("MemAvailable");
  if (const TopologyHandle topology = load_topology()) {
    facts.packages = count_of(topology.get(), HWLOC_OBJ_PACKAGE);
    facts.cores = count_of(topology.get(), HWLOC_OBJ_CORE);
    facts.threads = count_of(topology.get(), HWLOC_OBJ_PU);
    facts.numa_nodes = count_of(topology.get(), HWLOC_OBJ_NUMANODE);
    facts.allowed_threads = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology.get()));
    facts.caches = caches_of(topology.get());
  }
  return facts;
}

std::vector<PartFact> detect_parts() {
  // The other parts of a build are for its tests and benchmarks.
  constexpr auto kShown =
      std::to_array<std::string_view>({"CUDA toolkit", "NCCL", "MPI", "Qt 6", "QCustomPlot"});
  std::vector<PartFact> facts = {gpu_fact()};
  for (const BuildPart& part : kBuildParts) {
    const bool is_shown = std::find(kShown.begin(), kShown.end(), part.name) != kShown.end();
    if (is_shown) facts.push_back(build_fact(part));
  }
  return facts;
}

std::vector<std::string> missing_for_cuda() {
  std::vector<std::string> reasons;
  for (const PartFact& part : detect_parts()) {
    const bool is_needed = part.name == "GPU" || part.name == "CUDA toolkit";
    if (is_needed && !part.is_found) reasons.push_back(fmt::format("{}: {}", part.name, part.text));
  }
  return reasons.empty() ? cuda::missing_devices() : reasons;
}

}  // namespace ring
