#include "kernels/cpu/workspace.h"

#include <hwloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace ring::cpu {
namespace {

constexpr std::size_t kAlign = 128;

struct TopologyDelete {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

// Bytes of the data cache of `type` above the first core, divided by the cores that share it.
int64_t share_of_core(hwloc_topology_t topology, hwloc_obj_type_t type, int64_t otherwise) {
  const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  if (cache == nullptr || cache->attr == nullptr || cache->attr->cache.size == 0) return otherwise;
  const int cores = hwloc_get_nbobjs_inside_cpuset_by_type(topology, cache->cpuset, HWLOC_OBJ_CORE);
  return static_cast<int64_t>(cache->attr->cache.size) / std::max(cores, 1);
}

CacheSizes read_caches() {
  CacheSizes sizes;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return sizes;
  const std::unique_ptr<hwloc_topology, TopologyDelete> topology(raw);
  if (hwloc_topology_load(raw) != 0) return sizes;
  sizes.l1_bytes = share_of_core(raw, HWLOC_OBJ_L1CACHE, sizes.l1_bytes);
  sizes.l2_bytes = share_of_core(raw, HWLOC_OBJ_L2CACHE, sizes.l2_bytes);
  sizes.l3_bytes = share_of_core(raw, HWLOC_OBJ_L3CACHE, sizes.l2_bytes);
  return sizes;
}

}  // namespace

CacheSizes detect_caches() {
  static const CacheSizes kSizes = read_caches();  // They do not change; reading takes a while.
  return kSizes;
}

void Workspace::Free::operator()(std::byte* p) const { std::free(p); }

std::byte* Workspace::reserve(int64_t bytes) {
  if (bytes > capacity_) {
    const std::size_t size = (static_cast<std::size_t>(bytes) + kAlign - 1) / kAlign * kAlign;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlign, size)));
    if (!data_) {
      capacity_ = 0;
      throw std::bad_alloc();
    }
    capacity_ = static_cast<int64_t>(size);
  }
  return data_.get();
}

}  // namespace ring::cpu
