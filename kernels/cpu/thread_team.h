// A small team of pinned threads that runs one function at a time on all of its members.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace ring::cpu {

// One processing unit of every core this process may run on, as OS indices, NUMA node by NUMA
// node, so that the first n of them are as close together as can be.
std::vector<int> cores_of_machine();

// Binds the calling thread to one processing unit; returns whether the system allowed it.
bool pin_this_thread(int cpu);

// The caller of run() is member 0 and keeps its own affinity; the others are threads of the team.
// They spin for a short while after each run and then sleep, so a team may be larger than the
// machine. Not reentrant; run() from one thread at a time.
class ThreadTeam {
 public:
  // `threads` members in all, at least 1. Member i >= 1 is pinned to cpus[i % cpus.size()] where
  // `cpus` is not empty.
  explicit ThreadTeam(int threads, std::vector<int> cpus = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Calls function(member) once for every member in [0, size()) and returns when all are done.
  // Allocates nothing. The first exception thrown by a member is thrown again here.
  template <class Function>
  void run(Function&& function) {
    using Body = std::remove_reference_t<Function>;
    auto* body = const_cast<void*>(static_cast<const void*>(&function));
    start(body, [](void* at, int member) { (*static_cast<Body*>(at))(member); });
  }

 private:
  using Call = void (*)(void* body, int member);
  void start(void* body, Call call);
  void call_member(int member);
  void work(int member, int cpu);

  void* body_ = nullptr;
  Call call_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> has_error_ = false;
  alignas(64) std::atomic<uint32_t> round_ = 0;  // raised to start a run
  alignas(64) std::atomic<int> busy_ = 0;        // members other than 0 still in the run
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ring::cpu
