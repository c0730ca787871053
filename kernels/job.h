// Job: the processes that run one program together, whoever started them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace ring {

/// Every function is called by all processes, in the same order.
class Job {
 public:
  virtual ~Job() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Number of this process among those of its host.
  virtual int local_rank() const = 0;
  /// The bytes of process 0 become those of all.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
  /// On process 0 the bytes of all, by process; elsewhere nothing.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) = 0;
  virtual void barrier() = 0;
};

/// The job that a launcher (mpirun, srun) has started this process in; null when it was started by
/// itself, or when this build has no MPI and nothing says otherwise. Throws Error(kUnavailable)
/// when a launcher has started several processes and this build has no MPI.
std::unique_ptr<Job> join_launched_job();

}  // namespace ring
