// DeviceLane: the device primitives as instructions of the GPU; HostLane is their twin.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/simt/macros.h"
#include "kernels/simt/types.h"

namespace ring::simt {

/// See HostLane for what every primitive does.
class DeviceLane {
 public:
  RING_DEVICE int thread() const { return static_cast<int>(threadIdx.x); }
  RING_DEVICE int lane() const { return static_cast<int>(threadIdx.x % kWarp); }
  RING_DEVICE int warp() const { return static_cast<int>(threadIdx.x / kWarp); }
  RING_DEVICE int threads() const { return static_cast<int>(blockDim.x); }
  RING_DEVICE int block_x() const { return static_cast<int>(blockIdx.x); }
  RING_DEVICE int block_y() const { return static_cast<int>(blockIdx.y); }
  RING_DEVICE int block_z() const { return static_cast<int>(blockIdx.z); }
  RING_DEVICE int grid_x() const { return static_cast<int>(gridDim.x); }
  RING_DEVICE SharedAddress shared_begin() const {
    extern __shared__ __align__(1024) unsigned char ring_shared[];
    return static_cast<SharedAddress>(__cvta_generic_to_shared(ring_shared));
  }

  RING_DEVICE int fresh(int value) const {
    int same;
    asm volatile("mov.b32 %0, %1;" : "=r"(same) : "r"(value));
    return same;
  }

  RING_DEVICE void mma(Bf16, float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  RING_DEVICE void mma(F16, float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }

  RING_DEVICE void ldmatrix(uint32_t (&r)[4], SharedAddress row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
  }
  RING_DEVICE void ldmatrix_trans(uint32_t (&r)[4], SharedAddress row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
  }

  RING_DEVICE void copy_async(SharedAddress to, const void* from, bool is_there) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(is_there ? kCopyBytes : 0)
                 : "memory");
  }
  RING_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
  template <int kPending>
  RING_DEVICE void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  }

  RING_DEVICE void sync_block() { __syncthreads(); }
  RING_DEVICE void sync_warp() { __syncwarp(); }
  RING_DEVICE float shuffle_xor(float value, int mask) {
    return __shfl_xor_sync(0xffffffffU, value, mask);
  }
  RING_DEVICE int shuffle_xor(int value, int mask) {
    return __shfl_xor_sync(0xffffffffU, value, mask);
  }
  RING_DEVICE bool any(bool value) { return __any_sync(0xffffffffU, value) != 0; }

  RING_DEVICE float exp2(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
  }
  RING_DEVICE float log(float x) { return logf(x); }

  RING_DEVICE uint32_t pack(Bf16, float low, float high) {
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
  RING_DEVICE uint32_t pack(F16, float low, float high) {
    uint32_t packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
  RING_DEVICE Float2 unpack(Bf16, uint32_t packed) {
    return {__uint_as_float(packed << 16), __uint_as_float(packed & 0xffff0000U)};
  }
  RING_DEVICE Float2 unpack(F16, uint32_t packed) {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&packed));
    return {both.x, both.y};
  }

  template <class T>
  RING_DEVICE T load_shared(SharedAddress at, bool takes_part = true) {
    T value{};
    if (takes_part) value = *static_cast<const T*>(__cvta_shared_to_generic(at));
    return value;
  }
  template <class T>
  RING_DEVICE void store_shared(SharedAddress at, const T& value, bool takes_part = true) {
    if (takes_part) *static_cast<T*>(__cvta_shared_to_generic(at)) = value;
  }

  template <class T>
  RING_DEVICE T load_global(const T* at) {
    return *at;
  }
  template <class T>
  RING_DEVICE void store_global(T* at, const T& value) {
    *at = value;
  }
  RING_DEVICE void add_global(float* at, float value) { atomicAdd(at, value); }
};

}  // namespace ring::simt
