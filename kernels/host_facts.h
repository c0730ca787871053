// HostFacts: what this machine is, and which optional parts were found.
#pragma once

#include <string>
#include <vector>

#include "core/units.h"

namespace ring {

/// One level of data cache.
struct CacheFact {
  int level = 1;
  Bytes bytes = 0;
  int shared_by = 1;  ///< Cores that share one.
};

struct HostFacts {
  std::string processor;  ///< Model name, "unknown" where the system does not say.
  int packages = 0, cores = 0, threads = 0, numa_nodes = 0;
  int allowed_threads = 0;  ///< That this process may run on (affinity, container limits).
  std::vector<CacheFact> caches;
  Bytes memory_bytes = 0, available_bytes = 0;  ///< 0: unknown.
};

HostFacts detect_host();

/// An optional part: found, or what is missing.
struct PartFact {
  std::string name;
  bool is_found = false;
  std::string text;  ///< Version or place when found, else what is missing and what it costs.
};

std::vector<PartFact> detect_parts();

/// Why nothing can run on a CUDA device here, one reason each; empty when it can.
std::vector<std::string> missing_for_cuda();

}  // namespace ring
