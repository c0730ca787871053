#include "kernels/cores.h"

#include <hwloc.h>

#include <algorithm>

#include "core/error.h"

namespace ring {

struct Cores::Topology {
  hwloc_topology_t handle = nullptr;
  ~Topology() {
    if (handle != nullptr) hwloc_topology_destroy(handle);
  }
  /// hwloc finds no cores on some virtual machines, but always processing units.
  hwloc_obj_type_t unit() const {
    return hwloc_get_nbobjs_by_type(handle, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  }
};

Cores::Cores() : topology_(std::make_unique<Topology>()) {
  const unsigned long flags =
      HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM;
  if (hwloc_topology_init(&topology_->handle) != 0 ||
      hwloc_topology_set_flags(topology_->handle, flags) != 0 ||
      hwloc_topology_load(topology_->handle) != 0)
    throw Error(ErrorKind::kRunFailed, "hwloc cannot read the processors of this machine");
}

Cores::~Cores() = default;

int Cores::count() const {
  return std::max(hwloc_get_nbobjs_by_type(topology_->handle, topology_->unit()), 1);
}

bool Cores::bind_this_thread(int core) const {
  const hwloc_obj_t object =
      hwloc_get_obj_by_type(topology_->handle, topology_->unit(), static_cast<unsigned>(core));
  RING_ASSERT(object != nullptr);
  return hwloc_set_cpubind(topology_->handle, object->cpuset, HWLOC_CPUBIND_THREAD) == 0;
}

}  // namespace ring
