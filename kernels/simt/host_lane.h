// HostLane: the device primitives on the host, exact and unforgiving; DeviceLane is their twin.
#pragma once

#include <cmath>
#include <cstring>
#include <source_location>

#include "kernels/simt/block.h"
#include "kernels/simt/collectives.h"
#include "kernels/simt/numbers.h"

namespace ring::simt {

/// One thread of a launch. Kernels are templates over the lane type; what is written with it is
/// their whole contact with the machine. All lanes of a warp must come to the same collective
/// (mma, ldmatrix, shuffle, any, barriers, accesses to shared memory, copies): where they do not,
/// or touch what they may not yet, the launch ends with a SimtFault.
class HostLane {
 public:
  using Where = std::source_location;

  HostLane(Block& block, int thread) : block_(block), thread_(thread) {}

  int thread() const { return thread_; }
  int lane() const { return thread_ % kWarp; }
  int warp() const { return thread_ / kWarp; }
  int threads() const { return block_.shape().threads; }
  int block_x() const { return block_.block(0); }
  int block_y() const { return block_.block(1); }
  int block_z() const { return block_.block(2); }
  int grid_x() const { return block_.shape().grid_x; }
  /// Address of the first byte of the block's dynamic shared memory.
  SharedAddress shared_begin() const { return 0; }

  /// The same value, of which a compiler does not know that it is: what is computed from it is not
  /// kept in registers from one round of a loop to the next.
  int fresh(int value) const { return value; }

  void mma(Bf16, float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
           const Where& where = Where::current()) {
    MmaArgument argument{d, a, {b0, b1}};
    block_.meet(thread_, Collective::kMma, &argument, execute_mma_bf16, where);
  }
  void mma(F16, float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1,
           const Where& where = Where::current()) {
    MmaArgument argument{d, a, {b0, b1}};
    block_.meet(thread_, Collective::kMma, &argument, execute_mma_f16, where);
  }

  void ldmatrix(uint32_t (&r)[4], SharedAddress row, const Where& where = Where::current()) {
    LdmatrixArgument argument{r, row};
    block_.meet(thread_, Collective::kLdmatrix, &argument, execute_ldmatrix, where);
  }
  void ldmatrix_trans(uint32_t (&r)[4], SharedAddress row, const Where& where = Where::current()) {
    LdmatrixArgument argument{r, row};
    block_.meet(thread_, Collective::kLdmatrixTrans, &argument, execute_ldmatrix_trans, where);
  }

  /// Copies 16 bytes, or zeros when the source is not there; `from` is then not touched.
  void copy_async(SharedAddress to, const void* from, bool is_there,
                  const Where& where = Where::current()) {
    if (is_there) block_.check_global(thread_, from, kCopyBytes, false, where);
    CopyArgument argument{to, is_there ? from : nullptr};
    block_.meet(thread_, Collective::kCopy, &argument, execute_copy, where);
  }
  void commit_copies() { block_.commit_copies(thread_); }
  template <int kPending>
  void wait_copies() {
    if (waits_++ != block_.sabotage().skip_wait) block_.wait_copies(thread_, kPending);
  }

  void sync_block(const Where& where = Where::current()) {
    if (barriers_++ != block_.sabotage().skip_barrier) block_.sync_block(thread_, where);
  }
  void sync_warp(const Where& where = Where::current()) {
    if (warp_barriers_++ == block_.sabotage().skip_warp_barrier) return;
    block_.meet(thread_, Collective::kWarpBarrier, nullptr, execute_warp_barrier, where);
  }

  float shuffle_xor(float value, int mask, const Where& where = Where::current()) {
    return float_of(shuffle(bits_of(value), lane() ^ mask, where));
  }
  int shuffle_xor(int value, int mask, const Where& where = Where::current()) {
    return static_cast<int>(shuffle(static_cast<uint32_t>(value), lane() ^ mask, where));
  }
  bool any(bool value, const Where& where = Where::current()) {
    VoteArgument argument{value};
    block_.meet(thread_, Collective::kVote, &argument, execute_any, where);
    return argument.value;
  }

  /// 2^x; results below the normal numbers are 0.
  float exp2(float x) {
    ++block_.counters().exp2;
    const float result = std::exp2(x);
    return result < 0x1p-126F ? 0.0F : result;
  }
  float log(float x) { return std::log(x); }

  template <class Element>
  uint32_t pack(Element element, float low, float high) {
    return narrow(element, low) | (static_cast<uint32_t>(narrow(element, high)) << 16);
  }
  template <class Element>
  Float2 unpack(Element element, uint32_t packed) {
    return {widen(element, static_cast<uint16_t>(packed & 0xffffU)),
            widen(element, static_cast<uint16_t>(packed >> 16))};
  }

  /// Lanes for which `takes_part` is false neither read nor write.
  template <class T>
  T load_shared(SharedAddress at, bool takes_part = true, const Where& where = Where::current()) {
    T value{};
    SharedArgument argument{at, &value, nullptr, takes_part ? int{sizeof(T)} : 0};
    block_.meet(thread_, Collective::kSharedLoad, &argument, execute_shared_load, where);
    return value;
  }
  template <class T>
  void store_shared(SharedAddress at, const T& value, bool takes_part = true,
                    const Where& where = Where::current()) {
    SharedArgument argument{at, nullptr, &value, takes_part ? int{sizeof(T)} : 0};
    block_.meet(thread_, Collective::kSharedStore, &argument, execute_shared_store, where);
  }

  template <class T>
  T load_global(const T* at, const Where& where = Where::current()) {
    block_.check_global(thread_, at, sizeof(T), false, where);
    block_.counters().global_read_bytes += int64_t{sizeof(T)};
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  template <class T>
  void store_global(T* at, const T& value, const Where& where = Where::current()) {
    block_.check_global(thread_, at, sizeof(T), true, where);
    block_.counters().global_written_bytes += int64_t{sizeof(T)};
    std::memcpy(at, &value, sizeof value);
  }
  void add_global(float* at, float value, const Where& where = Where::current()) {
    block_.check_global(thread_, at, sizeof(float), true, where);
    block_.counters().global_written_bytes += int64_t{sizeof(float)};
    *at += value;
  }

 private:
  uint32_t shuffle(uint32_t value, int source_lane, const Where& where) {
    ShuffleArgument argument{value, source_lane};
    block_.meet(thread_, Collective::kShuffle, &argument, execute_shuffle, where);
    return argument.value;
  }

  Block& block_;
  int thread_;
  int waits_ = 0, barriers_ = 0, warp_barriers_ = 0;
};

/// Runs kernel(lane) for every thread of the launch and returns what was counted. Throws SimtFault.
template <class Kernel>
Counters launch(const LaunchOptions& options, const Kernel& kernel) {
  Block block(options);
  const auto entry = [](const void* function, Block& own, int thread) {
    HostLane lane(own, thread);
    (*static_cast<const Kernel*>(function))(lane);
  };
  block.run(entry, &kernel);
  return block.counters();
}

}  // namespace ring::simt
