#include "kernels/cpu/thread_team.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>

#include <utility>

#include "core/error.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace ring::cpu {
namespace {

// About 20 us of waiting before a thread gives its core away.
constexpr int kSpins = 2000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `value` differs from `old`.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

struct TopologyDelete {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};

}  // namespace

std::vector<int> cores_of_machine() {
  std::vector<int> cpus;
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return cpus;
  const std::unique_ptr<hwloc_topology, TopologyDelete> topology(raw);
  if (hwloc_topology_load(raw) != 0) return cpus;
  // Logical order follows the tree: packages, NUMA nodes, shared caches, cores.
  const int cores = hwloc_get_nbobjs_by_type(raw, HWLOC_OBJ_CORE);
  for (int i = 0; i < cores; ++i) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(raw, HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    const int first = core == nullptr ? -1 : hwloc_bitmap_first(core->cpuset);
    if (first >= 0) cpus.push_back(first);
  }
  return cpus;
}

bool pin_this_thread(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

ThreadTeam::ThreadTeam(int threads, std::vector<int> cpus) {
  RING_ASSERT(threads >= 1);
  for (int member = 1; member < threads; ++member) {
    const int cpu = cpus.empty() ? -1 : cpus[static_cast<size_t>(member) % cpus.size()];
    threads_.emplace_back([this, member, cpu] { work(member, cpu); });
  }
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::call_member(int member) {
  try {
    call_(body_, member);
  } catch (...) {
    if (!has_error_.exchange(true)) error_ = std::current_exception();
  }
}

void ThreadTeam::start(void* body, Call call) {
  body_ = body;
  call_ = call;
  has_error_ = false;
  const int others = static_cast<int>(threads_.size());
  busy_.store(others, std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  if (others > 0) round_.notify_all();
  call_member(0);
  for (int busy = busy_.load(std::memory_order_acquire); busy != 0;
       busy = busy_.load(std::memory_order_acquire)) {
    wait_while(busy_, busy);
  }
  if (has_error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadTeam::work(int member, int cpu) {
  if (cpu >= 0) pin_this_thread(cpu);
  for (uint32_t seen = 0;;) {
    wait_while(round_, seen);
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    call_member(member);
    busy_.fetch_sub(1, std::memory_order_acq_rel);
    busy_.notify_all();
  }
}

}  // namespace ring::cpu
