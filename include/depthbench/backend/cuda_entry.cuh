// The one __global__ function, and the kinds of work it does. A kind says how much there is (count), who takes what
// (first(), step(): a block or a thread an item), and does one item; the guard stands in cuda_entry and nowhere else.
#pragma once
#include "depthbench/backend/simt_geometry.hpp"
#include "depthbench/kernel/program.hpp"

namespace depthbench::cuda {

// What SimtTeam and the kernels of attention ask of a place: a thread block.
struct Prim {
  static constexpr int warp = 32;
#if DB_DEVICE_PASS
  DB_FN int rank() const { return int(threadIdx.x); }
  DB_FN int size() const { return int(blockDim.x); }
  DB_FN void sync() const { __syncthreads(); }
  template <class T> DB_FN T shfl(T x, int lane) const { return __shfl_sync(~0u, x, lane); }
  template <class T> DB_FN T shfl_xor(T x, int mask) const { return __shfl_xor_sync(~0u, x, mask); }
  // c (16, 8) += a (16, 16) b (16, 8), by the tensor cores; the layout stands in emulated_block.hpp.
  DB_FN void mma(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) const {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  template <class R> DB_FN R* shared(int offset) const {
    extern __shared__ __align__(16) unsigned char cuda_shared_memory[];
    return reinterpret_cast<R*>(cuda_shared_memory) + offset;
  }
#else  // nvcc's pass over the host's half only needs the names
  DB_FN int rank() const { return 0; }
  DB_FN int size() const { return 1; }
  DB_FN void sync() const {}
  template <class T> DB_FN T shfl(T x, int) const { return x; }
  template <class T> DB_FN T shfl_xor(T x, int) const { return x; }
  DB_FN void mma(float (&)[4], const std::uint32_t (&)[4], const std::uint32_t (&)[2]) const {}
  template <class R> DB_FN R* shared(int) const { return nullptr; }
#endif
};

struct ByBlock {  // a block an item
  static DB_FN std::int64_t first() {
#if DB_DEVICE_PASS
    return blockIdx.x;
#else
    return 0;
#endif
  }
  static DB_FN std::int64_t step() {
#if DB_DEVICE_PASS
    return gridDim.x;
#else
    return 1;
#endif
  }
};
struct ByThread {  // a thread an item
  static constexpr int most_threads = 256;
  struct State { DB_FN explicit State(const ByThread&) {} };
  static DB_FN std::int64_t first() {
#if DB_DEVICE_PASS
    return std::int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
#else
    return 0;
#endif
  }
  static DB_FN std::int64_t step() {
#if DB_DEVICE_PASS
    return std::int64_t(gridDim.x) * blockDim.x;
#else
    return 1;
#endif
  }
};

// A row program: team k walks the tokens k, k + teams, ...; an item is a team.
template <Mode M, class S, class Program> struct RowKind : ByBlock {
  using Team = SimtTeam<S, simt_width_of<S, void>(), simt_packs_of<Program>(), Prim>;
  static constexpr int most_threads = simt_most_threads, least_blocks = 1;
  std::int64_t count;  // teams
  Program program;
  ProgramArgs<Program, S, S> args;
  int tokens, d;
  int sums_at;         // byte of shared memory

  struct State {
    Team team;
    DB_FN explicit State(const RowKind& k)
        : team(k.d, Prim{}, reinterpret_cast<typename Team::Pack*>(Prim{}.template shared<unsigned char>(k.sums_at))) {}
  };
  DB_FN void operator()(State& s, std::int64_t k) const { run_program<M, S>(program, s.team, args, int(k), tokens, int(count), int(k)); }
};

// A body(team, first, last) over tiles; an item is a tile.
template <class R, class Body> struct TileKind : ByBlock {
  using Team = SimtTeam<R, simt_width_of<R, Body>(), 1, Prim>;
  static constexpr int most_threads = 256, least_blocks = 2;
  std::int64_t count;
  Body body;
  int tokens, tile, d;

  struct State {
    Team team;
    DB_FN explicit State(const TileKind& k) : team(k.d, Prim{}, nullptr) {}
  };
  DB_FN void operator()(State& s, std::int64_t k) const {
    const int first = int(k) * tile, last = first + tile < tokens ? first + tile : tokens;
    body(s.team, first, last);
  }
};

// A body.at<Pack>(i, left): an item is a pack.
template <class P, class Body> struct PackKind : ByThread {
  static constexpr int least_blocks = simt_width_of<typename P::real, Body>() == 1 ? 1 : 4;  // bodies of one number hold matrices
  std::int64_t count;
  Body body;
  DB_FN void operator()(State&, std::int64_t i) const { body.template at<P>(std::size_t(i) * P::width, P::width); }
};
// A body(first, count): an item is a number.
template <class Body> struct ElementKind : ByThread {
  static constexpr int least_blocks = 4;
  std::int64_t count;
  Body body;
  DB_FN void operator()(State&, std::int64_t i) const { body(std::size_t(i), 1); }
};
// A body(prim, item) of body.threads threads that share body.shared_reals numbers.
template <class Body> struct BlockKind : ByBlock {
  static constexpr int most_threads = Body::threads, least_blocks = 2;
  std::int64_t count;
  Body body;
  struct State { DB_FN explicit State(const BlockKind&) {} };
  DB_FN void operator()(State&, std::int64_t i) const { body(Prim{}, int(i)); }
};

template <class Kind> __global__ void __launch_bounds__(Kind::most_threads, Kind::least_blocks) cuda_entry(const __grid_constant__ Kind kind) {
  typename Kind::State state(kind);
  for (std::int64_t i = Kind::first(); i < kind.count; i += Kind::step()) kind(state, i);
}

// ---- bodies of the device's own verbs
// out (n) (+)= sum over teams of part (teams, n), in order
template <class R> struct FoldPartials {
  const R* part;
  R* out;
  std::int64_t n;
  int teams;
  bool add;
  DB_FN void operator()(std::size_t i, std::size_t) const {
    R s = add ? out[i] : R(0);
    for (int k = 0; k < teams; ++k) s += part[k * n + std::int64_t(i)];
    out[i] = s;
  }
};
// Words that travel as the arguments of a launch: nothing waits, and a graph that captures the launch holds them.
struct StoreWords {
  static constexpr int most = 896;
  unsigned* to;
  unsigned word[most];
  DB_FN void operator()(std::size_t i, std::size_t) const { to[i] = word[i]; }
};
// to (rows, cols), dense, of from (rows, ld)
template <class T> struct RoundRows {
  const float* from;
  T* to;
  std::int64_t cols, ld;
  DB_FN void operator()(std::size_t i, std::size_t) const { to[i] = T(from[std::int64_t(i) / cols * ld + std::int64_t(i) % cols]); }
};

}  // namespace depthbench::cuda
