// Where the elements of a small per-token matrix live.
//   Replicated    element k in register k                              (a CPU thread)
//   Distributed   element k in lane k % 32, register k / 32            (a GPU team: every warp holds one copy)
// Programs do not see the difference: a 4 x 6 matrix costs 24 registers on the CPU and one on a GPU.
//
// Whatever is not elementwise is a gather with a compile-time index map F:
//   out[k] = a[F::at(k)],   adjoint   ga[j] += sum over q < F::fan of g[F::pre(j, q)]    (-1: none)
#pragma once
#include "depthbench/config.hpp"

namespace depthbench {

template <class R_> struct Replicated {
  using R = R_;
  static constexpr int lanes = 1;
  template <int N> static constexpr int regs = N;
  template <int N> DB_FN int elem(int s) const { return s; }
  template <class F, int N, int NA> DB_FN void gather(R (&out)[N], const R (&a)[NA]) const {
    DB_UNROLL for (int k = 0; k < N; ++k) out[k] = a[F::at(k)];
  }
  template <class F, int N, int NA> DB_FN void scatter_add(R (&ga)[NA], const R (&g)[N]) const {
    DB_UNROLL for (int j = 0; j < NA; ++j) DB_UNROLL for (int q = 0; q < F::fan; ++q) {
      const int k = F::pre(j, q);
      if (k >= 0) ga[j] += g[k];
    }
  }
  template <int N> DB_FN R get(const R (&a)[N], int k) const { return a[k]; }
  template <int N> DB_FN R total(const R (&a)[N]) const {
    R s = 0;
    DB_UNROLL for (int k = 0; k < N; ++k) s += a[k];
    return s;
  }
};

template <class R_, class Prim> struct Distributed {
  using R = R_;
  static constexpr int lanes = Prim::warp;
  template <int N> static constexpr int regs = (N + lanes - 1) / lanes;
  Prim prim;
  DB_FN int lane() const { return prim.rank() % lanes; }
  template <int N> DB_FN int elem(int s) const { return s * lanes + lane(); }
  template <int NR> DB_FN R fetch(const R (&a)[NR], int j) const {  // element j of a; j may differ per lane
    R r = prim.shfl(a[0], j % lanes);
    DB_UNROLL for (int q = 1; q < NR; ++q) {
      const R x = prim.shfl(a[q], j % lanes);
      r = j / lanes == q ? +x : +r;  // unary +: selecting between lvalues would put the array into local memory
    }
    return r;
  }
  template <class F, int N, int NA> DB_FN void gather(R (&out)[N], const R (&a)[NA]) const {
    DB_UNROLL for (int s = 0; s < N; ++s) out[s] = fetch(a, F::at(s * lanes + lane()));
  }
  template <class F, int N, int NA> DB_FN void scatter_add(R (&ga)[NA], const R (&g)[N]) const {
    DB_UNROLL for (int s = 0; s < NA; ++s) DB_UNROLL for (int q = 0; q < F::fan; ++q) {
      const int k = F::pre(s * lanes + lane(), q);
      const R x = fetch(g, k < 0 ? 0 : k);
      ga[s] += k < 0 ? R(0) : +x;
    }
  }
  template <int N> DB_FN R get(const R (&a)[N], int k) const { return prim.shfl(a[k / lanes], k % lanes); }  // k uniform
  template <int N> DB_FN R total(const R (&a)[N]) const {
    R s = 0;
    DB_UNROLL for (int q = 0; q < N; ++q) s += a[q];
    DB_UNROLL for (int m = lanes / 2; m > 0; m /= 2) s += prim.shfl_xor(s, m);
    return s;
  }
};

}  // namespace depthbench
