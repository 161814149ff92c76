// A team: the workers that handle one token. Kernel bodies are written against this concept and do not know
// where they run.
//   SerialTeam   one CPU thread; packs are SIMD registers, rows live in an L1-sized arena      (this file)
//   SimtTeam     the threads of a GPU block, or their emulation on the CPU                     (simt_team.hpp)
#pragma once
#include <concepts>
#include <cstdint>
#include <stdexcept>

#include "depthbench/kernel/lanes.hpp"
#include "depthbench/kernel/pack.hpp"

namespace depthbench {

template <class Team> concept TeamLike = requires(Team& team, typename Team::Acc& acc, typename Team::Pack pack,
                                                  typename Team::Store& row, typename Team::real (&k)[3]) {
  typename Team::real;
  { team.d } -> std::convertible_to<int>;         // channels of a row
  { team.packs() } -> std::convertible_to<int>;   // packs of a row this member owns
  { team.offset(0) } -> std::convertible_to<int>; // first channel of its pack 0
  team.alloc(row); team.release(row);             // this member's share of a scratch row: last in, first out
  Team::fma(acc, pack, pack);                     // acc += pack . pack
  { Team::hsum(acc) } -> std::convertible_to<typename Team::real>;  // this member's share of a sum; hsums: of K at once
  team.sum(k, k);                                 // K partial sums of the members -> a small matrix in lane layout
  team.lanes();
  { team.lead_warp() } -> std::convertible_to<bool>;
  { team.begin() } -> std::convertible_to<int>;   // first channel of this member in a row of any length,
  { team.step() } -> std::convertible_to<int>;    // and from there to its next pack
  { team.max(k[0]) } -> std::convertible_to<typename Team::real>;  // the largest of the members' numbers
  { team.leader() } -> std::convertible_to<bool>; // the one member that writes a token's scalars
};

// A norm's share of a program is accounted for apart (kernel/counted.hpp). On a team that computes this is nothing.
struct NoScope {};
template <class Team> DB_FN auto norm_scope(Team& team) {
  if constexpr (requires { team.norm_scope(); }) return team.norm_scope();
  else return NoScope{};
}

template <class R> struct SerialTeam {
  using real = R;
  using Pack = cpu_pack<R>;
  using Acc = Pack;
  using Lanes = Replicated<R>;
  struct Store {
    Pack* p;
    DB_HOST_FN Pack& operator[](int i) { return p[i]; }
    DB_HOST_FN const Pack& operator[](int i) const { return p[i]; }
  };
  using AccStore = Store;
  static constexpr bool simt = false;
  static constexpr int W = Pack::width;

  int d;
  Pack* top;  // bump arena: rows are released in reverse, as nodes are destroyed
  Pack* end;
  // arena: room for `rows` rows
  SerialTeam(int d_, void* arena, int rows = 1 << 20) : d(d_), top(static_cast<Pack*>(arena)), end(top + std::int64_t(rows) * packs()) {}

  DB_HOST_FN int packs() const { return (d + W - 1) / W; }
  DB_HOST_FN int offset(int i) const { return i * W; }
  DB_HOST_FN void alloc(Store& s) {
    s.p = top;
    top += packs();
    if (top > end) full();
  }
  DB_HOST_FN void release(Store& s) { top = s.p; }
  DB_HOST_FN void alloc_acc(AccStore& s) { alloc(s); }
  [[noreturn]] __attribute__((noinline)) static void full() { throw std::length_error("row program: holds more rows at once than a team has room for"); }
  static DB_HOST_FN Acc acc0() { return Pack::splat(R(0)); }
  static DB_HOST_FN void fma(Acc& a, Pack p, Pack q) { a = a + p * q; }
  // Sums over the lanes of K accumulators, in one fixed order.
  template <int K> static DB_HOST_FN void hsums(const Acc (&a)[K], R (&out)[K]) { lane_sums(a, out); }
  static DB_HOST_FN R hsum(Acc a) {
    const Acc one[1] = {a};
    R out[1];
    lane_sums(one, out);
    return out[0];
  }
  DB_HOST_FN Lanes lanes() const { return {}; }
  template <int K> DB_HOST_FN void sum(const R (&part)[K], R (&out)[K]) { DB_UNROLL for (int k = 0; k < K; ++k) out[k] = part[k]; }
  static DB_HOST_FN R hmax(Pack a) {
    R m = a.get(0);
    for (int i = 1; i < W; ++i) m = a.get(i) > m ? a.get(i) : m;
    return m;
  }
  DB_HOST_FN R max(R x) const { return x; }
  DB_HOST_FN int begin() const { return 0; }
  DB_HOST_FN int step() const { return W; }
  DB_HOST_FN bool lead_warp() const { return true; }
  DB_HOST_FN bool leader() const { return true; }
};

}  // namespace depthbench
