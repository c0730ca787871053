// Cores: the processor cores this process may use, and binding of threads to them.
#pragma once

#include <memory>

namespace ring {

/// A core with all its hardware threads counts as one. Cores that the process is not allowed to
/// use (taskset, cgroup) are not among them.
class Cores {
 public:
  /// Asks hwloc; throws Error(kRunFailed) when the machine cannot be read.
  Cores();
  ~Cores();

  int count() const;
  /// Keeps the calling thread on core number `core` (0 .. count - 1). False where the system does
  /// not let us; the thread then runs anywhere.
  bool bind_this_thread(int core) const;

 private:
  struct Topology;
  std::unique_ptr<Topology> topology_;
};

}  // namespace ring
