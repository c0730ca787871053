// Without MPI several processes cannot find each other.
#include <fmt/format.h>

#include "core/error.h"
#include "kernels/job.h"
#include "kernels/launcher.h"

namespace ring {

std::unique_ptr<Job> join_launched_job() {
  const int processes = launched_processes();
  if (processes == 1) return nullptr;
  throw Error(
      ErrorKind::kUnavailable,
      fmt::format("{} processes were launched, and ringscope was built without MPI", processes),
      "build where an MPI library is found");
}

}  // namespace ring
