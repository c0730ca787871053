// HostLane: the device primitives on the host, exact and unforgiving; DeviceLane is their twin.
#pragma once

#include <cmath>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "kernels/simt/block.h"
#include "kernels/simt/collectives.h"
#include "kernels/simt/matrix_descriptor.h"
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

  // Of sm_90. All lanes of a warp come to these together; where it says so, some take no part.

  /// A barrier whose phases end when so many have arrived and all announced bytes have come.
  /// Threads other than the one that begins it may use it after a barrier of the block, copies
  /// after a fence.
  void init_barrier(SharedAddress at, int arrivals, bool takes_part,
                    const Where& where = Where::current()) {
    BarrierInitArgument argument{at, arrivals, takes_part};
    block_.meet(thread_, Collective::kBarrierInit, &argument, execute_barrier_init, where);
  }
  void fence_barriers(const Where& where = Where::current()) {
    if (block_.sabotage().skips_init_fence) return;
    block_.meet(thread_, Collective::kBarrierFence, nullptr, execute_barrier_fence, where);
  }
  void arrive(SharedAddress barrier, bool takes_part, const Where& where = Where::current()) {
    arrive_announcing(barrier, 0, takes_part, where);
  }
  void arrive_announcing(SharedAddress barrier, int bytes, bool takes_part,
                         const Where& where = Where::current()) {
    const bool is_skipped = arrivals_++ == block_.sabotage().skip_arrival;
    ArriveArgument argument{barrier, bytes, takes_part && !is_skipped};
    block_.meet(thread_, Collective::kArrive, &argument, execute_arrive, where);
  }
  /// Until the last phase of this parity is over; there was one of parity 1 before all.
  void wait_phase(SharedAddress barrier, int parity, const Where& where = Where::current()) {
    const Sabotage& sabotage = block_.sabotage();
    const bool is_meant = sabotage.phase_wait_warp < 0 || sabotage.phase_wait_warp == warp();
    if (phase_waits_++ == sabotage.skip_phase_wait && is_meant) return;
    block_.wait_phase(thread_, barrier, parity, where);
  }
  /// Copies the box at a place of a tensor; its bytes arrive at the barrier.
  void copy_tensor(SharedAddress to, const TensorMap& map, const TensorPlace& place,
                   SharedAddress barrier, bool takes_part, const Where& where = Where::current()) {
    TensorCopyArgument argument{to, barrier, &map, place, takes_part};
    block_.meet(thread_, Collective::kTensorCopy, &argument, execute_tensor_copy, where);
  }

  /// d (64, 8 kN) += or = a (64, 16) b (8 kN, 16)^T, both as rows in shared memory, see
  /// matrix_descriptor. d is not to be touched until the wait for it.
  template <class Element, int kN>
  void wgmma(Element, float (&d)[kN][4], uint64_t a, uint64_t b, bool accumulates,
             const Where& where = Where::current()) {
    multiply({d[0], nullptr, a, b, kN * 8, std::is_same_v<Element, F16>, false, accumulates},
             where);
  }
  /// d (64, 8 kN) += a (64, 16), of registers, b (16, 8 kN), whose columns are contiguous.
  template <class Element, int kN>
  void wgmma_columns(Element, float (&d)[kN][4], const uint32_t (&a)[4], uint64_t b,
                     const Where& where = Where::current()) {
    multiply({d[0], a, 0, b, kN * 8, std::is_same_v<Element, F16>, true, true}, where);
  }
  /// Before products; the registers that they take, which were changed since the last.
  template <class... Registers>
  void wgmma_fence(Registers&...) {
    fence_products(Where::current());
  }
  void wgmma_commit(const Where& where = Where::current()) {
    block_.meet(thread_, Collective::kWgmmaCommit, nullptr, execute_wgmma_commit, where);
  }
  /// Until at most kPending committed groups are under way; d is of those that are done.
  template <int kPending, int kN>
  void wgmma_wait(float (&)[kN][4], const Where& where = Where::current()) {
    if (wgmma_waits_++ == block_.sabotage().skip_wgmma_wait) return;
    WgmmaWaitArgument argument{kPending};
    block_.meet(thread_, Collective::kWgmmaWait, &argument, execute_wgmma_wait, where);
  }
  /// The same for products that took their left side from registers.
  template <int kPending, int kN, int kSteps>
  void wgmma_wait(float (&d)[kN][4], uint32_t (&)[kSteps][4],
                  const Where& where = Where::current()) {
    wgmma_wait<kPending>(d, where);
  }
  /// What the thread wrote to shared memory by itself may from now on be read by matrix units.
  void fence_async() { block_.shared().fence_async(thread_); }
  /// Registers of a thread from now on; the whole warpgroup calls it.
  template <int kRegisters>
  void give_registers(const Where& where = Where::current()) {
    block_.meet(thread_, Collective::kRegisters, nullptr, execute_nothing, where);
  }
  template <int kRegisters>
  void take_registers(const Where& where = Where::current()) {
    block_.meet(thread_, Collective::kRegisters, nullptr, execute_nothing, where);
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

  void fence_products(const Where& where) {
    if (wgmma_fences_++ == block_.sabotage().skip_wgmma_fence) return;
    block_.meet(thread_, Collective::kWgmmaFence, nullptr, execute_wgmma_fence, where);
  }
  void multiply(WgmmaArgument argument, const Where& where) {
    block_.meet(thread_, Collective::kWgmma, &argument, execute_wgmma, where);
  }

  Block& block_;
  int thread_;
  int waits_ = 0, barriers_ = 0, warp_barriers_ = 0;
  int phase_waits_ = 0, arrivals_ = 0, wgmma_waits_ = 0, wgmma_fences_ = 0;
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
