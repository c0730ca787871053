// How code that is compiled for GPUs and for the host marks its functions and loops.
#pragma once

#ifdef __CUDACC__
#define RING_DEVICE __device__ __forceinline__
#define RING_BOTH __host__ __device__ __forceinline__
#define RING_UNROLL _Pragma("unroll")
#define RING_NO_UNROLL _Pragma("unroll 1")
#else
#define RING_DEVICE inline
#define RING_BOTH inline
#define RING_UNROLL
#define RING_NO_UNROLL
#endif
