// How work is laid out on blocks of threads, the same on a GPU and on its emulation.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "depthbench/core/error.hpp"
#include "depthbench/kernel/simt_team.hpp"

namespace depthbench {

// Numbers that a thread takes at a time: 16 bytes, one 128-bit access. Bodies whose rows begin anywhere say simt_width = 1,
// row programs that run on wider rows than others say how many packs a thread holds: simt_packs.
template <class R, class Body> constexpr int simt_width_of() {
  if constexpr (requires { Body::simt_width; }) return Body::simt_width;
  else return int(16 / sizeof(R));
}
template <class Program> constexpr int simt_packs_of() {
  if constexpr (requires { Program::simt_packs; }) return Program::simt_packs;
  else return 1;
}

inline constexpr int simt_most_threads = 512;  // of a block: 128 registers a thread

struct SimtGeometry {
  int threads;                // whole warps
  std::size_t shared_bytes;   // of reductions
  std::size_t sums_bytes;     // of parameter gradients, at the end of shared memory
};

// A team that holds rows of d in registers.   throws shape_error for rows that do not fit
template <class Team, class Program> SimtGeometry simt_rows(int d, int warp, bool backward) {
  using R = typename Team::real;
  constexpr int each = Team::W * Team::packs();
  const int threads = ((d + each - 1) / each + warp - 1) / warp * warp;
  if (threads > simt_most_threads)
    fail<shape_error>("row program: rows of {} channels, a block of threads holds {} at most", d, each * simt_most_threads);
  const std::size_t sums = backward ? std::size_t(Program::params::accumulators) * each * std::size_t(threads) * sizeof(R) : 0;
  return {threads, std::size_t(Team::shared_reals(threads / warp)) * sizeof(R), sums};
}

// A team that walks over rows of d.
template <class Team> SimtGeometry simt_tiles(int d, int warp) {
  const int threads = std::clamp((d + Team::W - 1) / Team::W, 1, 256);
  const int whole = (threads + warp - 1) / warp * warp;
  return {whole, std::size_t(Team::shared_reals(whole / warp)) * sizeof(typename Team::real), 0};
}

}  // namespace depthbench
