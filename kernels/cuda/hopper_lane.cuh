// HopperLane: the primitives that sm_90a adds, as instructions of the GPU; HostLane is their twin.
#pragma once

#include "kernels/cuda/device_lane.cuh"
#include "kernels/simt/matrix_descriptor.h"
#include "kernels/simt/tensor_map.h"

// Operands of an accumulator: 8 groups of four floats from n on, and their numbers in the text.
#define RING_D4(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define RING_D32(d, n)                                                                       \
  RING_D4(d, n), RING_D4(d, n + 1), RING_D4(d, n + 2), RING_D4(d, n + 3), RING_D4(d, n + 4), \
      RING_D4(d, n + 5), RING_D4(d, n + 6), RING_D4(d, n + 7)
#define RING_N32                                                                       \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22," \
  "%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define RING_N64                                                                      \
  RING_N32                                                                            \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51," \
  "%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
// Both sides in shared memory, rows contiguous in k; the left side in registers and the columns of
// the right one contiguous. The predicate says whether the accumulator is added to.
#define RING_WGMMA_ROWS(columns, type, numbers, a, b, adds)                                        \
  "{\n.reg .pred p;\nsetp.ne.b32 p, " adds                                                         \
  ", 0;\n"                                                                                         \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" numbers "}, " a ", " b \
  ", p, 1, 1, 0, 0;\n}\n"
#define RING_WGMMA_COLUMNS(columns, type, numbers, a, b)                            \
  "{\n.reg .pred p;\nsetp.eq.b32 p, 0, 0;\n"                                        \
  "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" numbers \
  "}, "                                                                             \
  "{" a "}, " b ", p, 1, 1, 1;\n}\n"

namespace ring::simt {

/// See HostLane for what every primitive does.
class HopperLane : public DeviceLane {
 public:
  RING_DEVICE void init_barrier(SharedAddress at, int arrivals, bool takes_part) {
    if (takes_part)
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
  }
  RING_DEVICE void fence_barriers() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
  }
  RING_DEVICE void arrive(SharedAddress barrier, bool takes_part) {
    if (takes_part)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
  }
  RING_DEVICE void arrive_announcing(SharedAddress barrier, int bytes, bool takes_part) {
    if (takes_part)
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                   "r"(bytes)
                   : "memory");
  }
  RING_DEVICE void wait_phase(SharedAddress barrier, int parity) {
    uint32_t is_over = 0;
    do {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}\n"
          : "=r"(is_over)
          : "r"(barrier), "r"(parity)
          : "memory");
    } while (is_over == 0);
  }
  RING_DEVICE void copy_tensor(SharedAddress to, const TensorMap& map, const TensorPlace& place,
                               SharedAddress barrier, bool takes_part) {
    if (!takes_part) return;
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(place.column), "r"(place.row), "r"(place.head),
        "r"(place.batch)
        : "memory");
  }

  template <int kN>
  RING_DEVICE void wgmma(Bf16, float (&d)[kN][4], uint64_t a, uint64_t b, bool accumulates) {
    static_assert(kN == 16, "tiles of 128 keys");
    asm volatile(RING_WGMMA_ROWS("128", "bf16", RING_N64, "%64", "%65", "%66")
                 : RING_D32(d, 0), RING_D32(d, 8)
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulates)));
  }
  template <int kN>
  RING_DEVICE void wgmma(F16, float (&d)[kN][4], uint64_t a, uint64_t b, bool accumulates) {
    static_assert(kN == 16, "tiles of 128 keys");
    asm volatile(RING_WGMMA_ROWS("128", "f16", RING_N64, "%64", "%65", "%66")
                 : RING_D32(d, 0), RING_D32(d, 8)
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulates)));
  }

  template <int kN>
  RING_DEVICE void wgmma_columns(Bf16, float (&d)[kN][4], const uint32_t (&a)[4], uint64_t b) {
    static_assert(kN == 8 || kN == 16, "head dims 64 and 128");
    if constexpr (kN == 8) {
      asm volatile(RING_WGMMA_COLUMNS("64", "bf16", RING_N32, "%32,%33,%34,%35", "%36")
                   : RING_D32(d, 0)
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    } else {
      asm volatile(RING_WGMMA_COLUMNS("128", "bf16", RING_N64, "%64,%65,%66,%67", "%68")
                   : RING_D32(d, 0), RING_D32(d, 8)
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }
  }
  template <int kN>
  RING_DEVICE void wgmma_columns(F16, float (&d)[kN][4], const uint32_t (&a)[4], uint64_t b) {
    static_assert(kN == 8 || kN == 16, "head dims 64 and 128");
    if constexpr (kN == 8) {
      asm volatile(RING_WGMMA_COLUMNS("64", "f16", RING_N32, "%32,%33,%34,%35", "%36")
                   : RING_D32(d, 0)
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    } else {
      asm volatile(RING_WGMMA_COLUMNS("128", "f16", RING_N64, "%64,%65,%66,%67", "%68")
                   : RING_D32(d, 0), RING_D32(d, 8)
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }
  }

  /// The registers are changed before the fence, wherever the compiler would like to do it.
  template <class... Registers>
  RING_DEVICE void wgmma_fence(Registers&... registers) {
    (pin(registers), ...);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  }
  RING_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
  /// What is computed from `d` stays behind the wait, and left sides in their registers until then.
  template <int kPending, class... Registers>
  RING_DEVICE void wgmma_wait(Registers&... registers) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
    (pin(registers), ...);
  }

  RING_DEVICE void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
  template <int kRegisters>
  RING_DEVICE void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
  }
  template <int kRegisters>
  RING_DEVICE void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
  }

 private:
  /// The compiler takes the values for read and changed here.
  template <int kN>
  RING_DEVICE static void pin(float (&d)[kN][4]) {
    RING_UNROLL
    for (int n = 0; n < kN; ++n) asm volatile("" : RING_D4(d, n)::"memory");
  }
  template <int kSteps>
  RING_DEVICE static void pin(uint32_t (&a)[kSteps][4]) {
    RING_UNROLL
    for (int step = 0; step < kSteps; ++step)
      asm volatile("" : "+r"(a[step][0]), "+r"(a[step][1]), "+r"(a[step][2]), "+r"(a[step][3]));
  }
};

}  // namespace ring::simt

#undef RING_D4
#undef RING_D32
#undef RING_N32
#undef RING_N64
#undef RING_WGMMA_ROWS
#undef RING_WGMMA_COLUMNS
