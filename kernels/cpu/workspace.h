// Scratch memory of one kernel thread, and the cache sizes its tiles are chosen from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ring::cpu {

// Data caches as one core sees them, in bytes. l3_bytes is the core's share of a shared cache.
struct CacheSizes {
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 4 << 20;
};

// Asks hwloc; a level it does not know keeps its default.
CacheSizes detect_caches();

// A grow-only aligned arena. Not thread-safe: one per thread, reserved by the thread that uses it
// so that its pages lie on that thread's NUMA node.
class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(const CacheSizes& caches) : caches_(caches) {}

  const CacheSizes& caches() const { return caches_; }
  int64_t capacity_bytes() const { return capacity_; }

  // At least `bytes` bytes, aligned to 128; the contents are lost when it grows.
  std::byte* reserve(int64_t bytes);

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  CacheSizes caches_;
  std::unique_ptr<std::byte, Free> data_;
  int64_t capacity_ = 0;
};

}  // namespace ring::cpu
