// What SimtTeam asks of a CUDA thread block. Enough to compile kernel bodies for the device; no launcher, never run.
#pragma once
#include "depthbench/kernel/simt_team.hpp"

struct BlockPrimitives {
  static constexpr int warp = 32;
  __device__ int rank() const { return int(threadIdx.x); }
  __device__ int size() const { return int(blockDim.x); }
  __device__ void sync() const { __syncthreads(); }
  template <class R> __device__ R shfl(R x, int lane) const { return __shfl_sync(~0u, x, lane); }
  template <class R> __device__ R shfl_xor(R x, int mask) const { return __shfl_xor_sync(~0u, x, mask); }
  template <class R> __device__ R* shared(int offset) const {
    extern __shared__ double block_memory[];
    return reinterpret_cast<R*>(block_memory) + offset;
  }
};

template <class R, int Packs> using BlockTeam = depthbench::SimtTeam<R, 4, Packs, BlockPrimitives>;
