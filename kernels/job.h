// Job: the processes that run one program together, whoever started them.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
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

/// On process 0 the values of all, in the order of the processes; elsewhere nothing.
template <class T>
std::vector<T> gather_values(Job& job, const std::vector<T>& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const std::vector<std::byte>& part : job.gather(std::as_bytes(std::span(own)))) {
    const size_t before = all.size();
    all.resize(before + part.size() / sizeof(T));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

/// The job that a launcher (mpirun, srun) has started this process in; null when it was started by
/// itself, or when this build has no MPI and nothing says otherwise. Throws Error(kUnavailable)
/// when a launcher has started several processes and this build has no MPI.
std::unique_ptr<Job> join_launched_job();

}  // namespace ring
