// The team of a GPU: N threads that hold a token's channels in registers.
// Prim supplies what the place must have, and nothing more:
//   warp (constexpr), rank(), size(), sync(), shfl_xor(v, mask), shfl(v, lane), shared<R>(offset)
// The reduction, its use of shared memory and its double buffering are written here once, so that an emulation of a
// thread block runs the very lines that a GPU runs.
#pragma once
#include "depthbench/kernel/scalar_math.hpp"
#include "depthbench/kernel/team.hpp"

namespace depthbench {

// W channels a pack, P packs a thread: width d <= W * P * threads.
template <class R, int W_, int P, class Prim> struct SimtTeam {
  using real = R;
  using Pack = Lane<R, W_>;
  using Acc = R;
  using Lanes = Distributed<R, Prim>;
  struct Store {
    Pack p[P];
    DB_FN Pack& operator[](int i) { return p[i]; }
    DB_FN const Pack& operator[](int i) const { return p[i]; }
  };
  // Sums of parameter gradients: slots of this thread in shared memory; nobody else touches them, no barrier is needed.
  struct AccStore {
    Pack* q;
    int stride;
    DB_FN Pack& operator[](int i) { return q[i * stride]; }
  };
  static constexpr bool simt = true;
  static constexpr int W = W_;
  static constexpr int max_sums = 128;  // of one reduction

  int d;
  Prim prim;
  Pack* acc;
  int parity = 0;
  DB_FN SimtTeam(int d_, Prim p, Pack* accumulators) : d(d_), prim(p), acc(accumulators) {}

  static constexpr DB_FN int packs() { return P; }
  DB_FN int offset(int i) const { return (i * prim.size() + prim.rank()) * W; }
  DB_FN int begin() const { return prim.rank() * W; }
  DB_FN int step() const { return prim.size() * W; }
  DB_FN void alloc(Store&) {}
  DB_FN void release(Store&) {}
  DB_FN void alloc_acc(AccStore& s) {
    s.q = acc + prim.rank();
    s.stride = prim.size();
    acc += P * prim.size();
  }
  static DB_FN Acc acc0() { return R(0); }
  static DB_FN void fma(Acc& a, Pack p, Pack q) { DB_UNROLL for (int i = 0; i < W; ++i) a += p.x[i] * q.x[i]; }
  static DB_FN R hsum(Acc a) { return a; }
  template <int K> static DB_FN void hsums(const Acc (&a)[K], R (&out)[K]) { DB_UNROLL for (int k = 0; k < K; ++k) out[k] = a[k]; }
  static DB_FN R hmax(Pack a) {
    R m = a.x[0];
    DB_UNROLL for (int i = 1; i < W; ++i) m = math::max(m, a.x[i]);
    return m;
  }
  DB_FN Lanes lanes() const { return {prim}; }
  DB_FN bool lead_warp() const { return prim.rank() < Prim::warp; }
  DB_FN bool leader() const { return prim.rank() == 0; }

  static constexpr DB_FN int shared_reals(int warps) { return 2 * warps * max_sums; }

  // K partial sums of every thread -> their totals in lane layout. One barrier: the buffers alternate.
  template <int K, int NR> DB_FN void sum(const R (&v)[K], R (&out)[NR]) {
    static_assert(K <= max_sums, "team.sum: too many values at once");
    static_assert(NR == Lanes::template regs<K>);
    constexpr int G = Prim::warp, C = pow2(K) < G ? pow2(K) : G;  // values of one butterfly
    constexpr int copies = G / C;                                 // lanes that end with the same value
    const int lane = prim.rank() % G, warp = prim.rank() / G, warps = (prim.size() + G - 1) / G;
    auto shared = prim.template shared<R>(0);
    const int buffer = parity * warps * max_sums;
    DB_UNROLL for (int c = 0; c < K; c += C) {
      R a[C];
      DB_UNROLL for (int i = 0; i < C; ++i) {
        const R q = v[c + i < K ? c + i : 0];
        a[i] = c + i < K ? +q : R(0);
      }
      halve<C, G / 2>(a);
      const int index = c + lane / copies;
      if (lane % copies == 0 && index < K) shared[buffer + warp * K + index] = a[0];
    }
    prim.sync();
    DB_UNROLL for (int s = 0; s < NR; ++s) {
      const int k = s * G + lane;
      R total = 0;
      if (k < K) for (int w = 0; w < warps; ++w) total += R(shared[buffer + w * K + k]);
      out[s] = total;
    }
    parity ^= 1;
  }
  DB_FN R max(R x) {
    constexpr int G = Prim::warp;
    DB_UNROLL for (int m = G / 2; m > 0; m /= 2) x = math::max(x, prim.shfl_xor(x, m));
    const int warps = (prim.size() + G - 1) / G, buffer = parity * warps * max_sums;
    auto shared = prim.template shared<R>(0);
    if (prim.rank() % G == 0) shared[buffer + prim.rank() / G] = x;
    prim.sync();
    for (int w = 0; w < warps; ++w) x = math::max(x, R(shared[buffer + w]));
    parity ^= 1;
    return x;
  }

 private:
  static constexpr DB_FN int pow2(int k) {
    int p = 1;
    while (p < k) p *= 2;
    return p;
  }
  // One step of a reduce-scatter butterfly: N live values become N / 2 across the lanes that differ in `Bit`.
  template <int N, int Bit> DB_FN void halve(R* a) {
    if constexpr (N > 1 && Bit > 0) {
      const bool up = prim.rank() & Bit;
      DB_UNROLL for (int i = 0; i < N / 2; ++i) {
        const R low = a[i], high = a[i + N / 2], kept = up ? +high : +low, sent = up ? +low : +high;
        a[i] = kept + prim.shfl_xor(sent, Bit);
      }
      halve<N / 2, Bit / 2>(a);
    } else if constexpr (Bit > 0) {
      a[0] += prim.shfl_xor(a[0], Bit);
      halve<1, Bit / 2>(a);
    }
  }
};

}  // namespace depthbench
