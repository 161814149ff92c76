// Every macro of the library. Five of them, all with the prefix DB_.
//
//   DB_FN              a function that may run on the host and on a GPU, inlined by force
//   DB_HOST_FN         a function of a kernel's CPU half (SIMD), inlined by force
//   DB_UNROLL          unroll the loop that follows (its trip count is a compile-time constant)
//   DB_UNROLL_SIMT     the same, but only where a member owns a compile-time number of packs (a GPU thread)
//   DB_DEVICE_PASS     1 while nvcc compiles for the GPU, else 0
//
// The user may define DEPTHBENCH_NO_FORCE_INLINE (debug and sanitizer builds: clang needs minutes otherwise).
#pragma once

#if defined(__CUDA_ARCH__)
#define DB_DEVICE_PASS 1
#else
#define DB_DEVICE_PASS 0
#endif

#if defined(__CUDACC__)
#define DB_FN __host__ __device__ __forceinline__
#define DB_HOST_FN inline __attribute__((always_inline))
#elif defined(DEPTHBENCH_NO_FORCE_INLINE)
#define DB_FN inline
#define DB_HOST_FN inline
#else
#define DB_FN inline __attribute__((always_inline))
#define DB_HOST_FN inline __attribute__((always_inline))
#endif

#if defined(__CUDACC__)
#pragma nv_diag_suppress 1675                       // "GCC unroll" is unknown to nvcc, which passes it on to g++
#pragma nv_diag_suppress 20011, 20012, 20013, 20014, 20015  // templates for CPU teams are never run on the device
#endif
#if DB_DEVICE_PASS
#define DB_UNROLL _Pragma("unroll")
#define DB_UNROLL_SIMT _Pragma("unroll")
#elif defined(DEPTHBENCH_NO_FORCE_INLINE)
#define DB_UNROLL
#define DB_UNROLL_SIMT
#elif defined(__clang__)
#define DB_UNROLL _Pragma("unroll")
#define DB_UNROLL_SIMT
#else
#define DB_UNROLL _Pragma("GCC unroll 32")
#define DB_UNROLL_SIMT
#endif
