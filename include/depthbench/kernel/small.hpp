// SMALL: matrices of a few numbers per token, in registers, with scoped reverse mode.
//
// A node owns its value v and, in Mode::Bwd, its adjoint g. Its constructor is the forward step and its destructor
// is the reverse step. C++ destroys locals in reverse order, so an ordinary function body, instantiated in Mode::Bwd,
// runs its adjoint program when its scope closes. No tape, no graph.
//
//   auto r = rsqrt(sum_squares(x) / x.dim() + eps);     // temporaries are owned by the node they enter,
//   auto z = tanh(r * dots(x, w));                      // named nodes are referenced
//
// Lifetime: a helper that returns a node must be one return expression. A node that refers to a local of the helper
// would outlive it, and gradients would be lost; every program therefore has a finite-difference test.
#pragma once
#include <cstddef>
#include <type_traits>

#include "depthbench/kernel/lanes.hpp"
#include "depthbench/kernel/pack_math.hpp"

namespace depthbench {

enum class Mode { Fwd, Bwd };

template <class R, int N, Mode M> struct Adjoint { R g[N] = {}; };
template <class R, int N> struct Adjoint<R, N, Mode::Fwd> {};

struct SmallTag {};
template <class T> concept SmallNode = std::is_base_of_v<SmallTag, std::remove_cvref_t<T>>;
template <class A> using Bare = std::remove_cvref_t<A>;

// NR x NC numbers, in the lane layout L of the team.
template <class L_, int NR, int NC, Mode M>
struct Small : SmallTag, Adjoint<typename L_::R, L_::template regs<NR * NC>, M> {
  using L = L_;
  using R = typename L::R;
  static constexpr int rows = NR, cols = NC, size = NR * NC, regs = L::template regs<size>;
  static constexpr Mode mode = M;
  [[no_unique_address]] L l;
  R v[regs];
  bool live = true;  // false once moved from: only the final owner runs the reverse step. Folds away after inlining

  DB_FN explicit Small(const L& x) : l(x) {}
  DB_FN Small(Small&& o) : l(o.l), live(o.live) {
    DB_UNROLL for (int s = 0; s < regs; ++s) v[s] = o.v[s];
    o.live = false;
  }
  DB_FN R at(int i, int j = 0) const { return l.get(v, i * NC + j); }  // the same number on all lanes
};
template <class A, int NR = Bare<A>::rows, int NC = Bare<A>::cols>
using SmallLike = Small<typename Bare<A>::L, NR, NC, Bare<A>::mode>;

// ---- elementwise functions of one matrix
namespace fn {
struct Tanh {
  template <class R> static DB_FN R f(R x) { return math::tanh(x); }
  template <class R> static DB_FN R df(R, R y) { return R(1) - y * y; }
};
struct Sigmoid {
  template <class R> static DB_FN R f(R x) { return math::sigmoid(x); }
  template <class R> static DB_FN R df(R, R y) { return y * (R(1) - y); }
};
struct Exp {
  template <class R> static DB_FN R f(R x) { return math::exp(x); }
  template <class R> static DB_FN R df(R, R y) { return y; }
};
struct Rsqrt {
  template <class R> static DB_FN R f(R x) { return math::rsqrt(x); }
  template <class R> static DB_FN R df(R, R y) { return R(-0.5) * y * y * y; }
};
struct TanhPack { template <class P> static DB_HOST_FN P f(P x) { return math::tanh(x); } };
struct SigmoidPack { template <class P> static DB_HOST_FN P f(P x) { return math::sigmoid(x); } };

// N numbers of a CPU thread, a whole register at a time: 24 calls of a scalar tanh would cost more than the reductions.
template <class F, class R, int N> DB_HOST_FN void by_packs(R (&out)[N], const R (&in)[N]) {
  using P = cpu_pack<R>;
  for (int i = 0; i < N; i += P::width) store_pack(out + i, F::f(load_pack<P>(in + i, N - i)), N - i);
}
}  // namespace fn

template <class F, class Packed, class A> struct Map : SmallLike<A> {
  A a;
  DB_FN explicit Map(A&& x) : SmallLike<A>(x.l), a(static_cast<A&&>(x)) {
    if constexpr (!std::is_void_v<Packed> && Bare<A>::L::lanes == 1 && Map::regs > 2 && !DB_DEVICE_PASS) {
      fn::by_packs<Packed>(this->v, a.v);
    } else {
      DB_UNROLL for (int s = 0; s < Map::regs; ++s) this->v[s] = F::f(a.v[s]);
    }
  }
  Map(Map&&) = default;
  DB_FN ~Map() {
    if constexpr (Map::mode == Mode::Bwd) if (this->live)
      DB_UNROLL for (int s = 0; s < Map::regs; ++s) a.g[s] += this->g[s] * F::df(a.v[s], this->v[s]);
  }
};
template <SmallNode A> DB_FN auto tanh(A&& a) { return Map<fn::Tanh, fn::TanhPack, A>(static_cast<A&&>(a)); }
template <SmallNode A> DB_FN auto sigmoid(A&& a) { return Map<fn::Sigmoid, fn::SigmoidPack, A>(static_cast<A&&>(a)); }
template <SmallNode A> DB_FN auto exp(A&& a) { return Map<fn::Exp, void, A>(static_cast<A&&>(a)); }
template <SmallNode A> DB_FN auto rsqrt(A&& a) { return Map<fn::Rsqrt, void, A>(static_cast<A&&>(a)); }

template <class A> struct Affine : SmallLike<A> {  // c * x + t, both plain numbers
  using R = typename Bare<A>::R;
  A a;
  R c;
  DB_FN Affine(A&& x, R c_, R t) : SmallLike<A>(x.l), a(static_cast<A&&>(x)), c(c_) {
    DB_UNROLL for (int s = 0; s < Affine::regs; ++s) this->v[s] = c * a.v[s] + t;
  }
  Affine(Affine&&) = default;
  DB_FN ~Affine() {
    if constexpr (Affine::mode == Mode::Bwd) if (this->live)
      DB_UNROLL for (int s = 0; s < Affine::regs; ++s) a.g[s] += c * this->g[s];
  }
};
template <SmallNode A> DB_FN auto operator+(A&& a, typename Bare<A>::R t) {
  return Affine<A>(static_cast<A&&>(a), typename Bare<A>::R(1), t);
}
template <SmallNode A> DB_FN auto operator*(typename Bare<A>::R c, A&& a) {
  return Affine<A>(static_cast<A&&>(a), c, typename Bare<A>::R(0));
}
template <SmallNode A> DB_FN auto operator/(A&& a, typename Bare<A>::R c) {
  using R = typename Bare<A>::R;
  return Affine<A>(static_cast<A&&>(a), R(1) / c, R(0));
}

// ---- index maps: parts of a matrix, its transpose
namespace fn {
template <int J, int K, int C> struct Columns {  // K columns from J of a matrix with C columns
  static constexpr int fan = 1;
  static DB_FN constexpr int at(int k) { return (k / K) * C + J + k % K; }
  static DB_FN constexpr int pre(int j, int) { return j % C >= J && j % C < J + K ? (j / C) * K + j % C - J : -1; }
};
template <int NR, int NC> struct Transpose {  // of an NR x NC matrix
  static constexpr int fan = 1;
  static DB_FN constexpr int at(int k) { return (k % NR) * NC + k / NR; }
  static DB_FN constexpr int pre(int j, int) { return j < NR * NC ? (j % NC) * NR + j / NC : -1; }
};
template <int AR, int AC, int NR, int NC> struct Spread {  // broadcast AR x AC to NR x NC
  static constexpr int fan = (AR == 1 ? NR : 1) * (AC == 1 ? NC : 1);
  static DB_FN constexpr int at(int k) { return (AR == 1 ? 0 : k / NC) * AC + (AC == 1 ? 0 : k % NC); }
  static DB_FN constexpr int pre(int j, int q) {
    return j >= AR * AC ? -1 : AR == NR && AC == NC ? j : AR == 1 && AC == 1 ? q : AR == 1 ? q * NC + j : j * NC + q;
  }
};
}  // namespace fn

template <class F, int NR, int NC, class A> struct View : SmallLike<A, NR, NC> {
  A a;
  DB_FN explicit View(A&& x) : SmallLike<A, NR, NC>(x.l), a(static_cast<A&&>(x)) { this->l.template gather<F>(this->v, a.v); }
  View(View&&) = default;
  DB_FN ~View() {
    if constexpr (View::mode == Mode::Bwd) if (this->live) this->l.template scatter_add<F>(a.g, this->g);
  }
};
template <int First, int Count, SmallNode A> DB_FN auto columns(A&& a) {
  static_assert(First >= 0 && First + Count <= Bare<A>::cols, "columns<first, count>: outside the matrix");
  return View<fn::Columns<First, Count, Bare<A>::cols>, Bare<A>::rows, Count, A>(static_cast<A&&>(a));
}
template <int J, SmallNode A> DB_FN auto column(A&& a) { return columns<J, 1>(static_cast<A&&>(a)); }
template <SmallNode A> DB_FN auto transpose(A&& a) {
  return View<fn::Transpose<Bare<A>::rows, Bare<A>::cols>, Bare<A>::cols, Bare<A>::rows, A>(static_cast<A&&>(a));
}

template <class A, int NR, int NC> struct Reshape : SmallLike<A, NR, NC> {
  A a;
  DB_FN explicit Reshape(A&& x) : SmallLike<A, NR, NC>(x.l), a(static_cast<A&&>(x)) {
    DB_UNROLL for (int s = 0; s < Reshape::regs; ++s) this->v[s] = a.v[s];
  }
  Reshape(Reshape&&) = default;
  DB_FN ~Reshape() {
    if constexpr (Reshape::mode == Mode::Bwd) if (this->live) DB_UNROLL for (int s = 0; s < Reshape::regs; ++s) a.g[s] += this->g[s];
  }
};
template <int NR, int NC, SmallNode A> DB_FN auto reshape(A&& a) {
  static_assert(NR * NC == Bare<A>::size, "reshape<rows, cols>: another number of elements");
  return Reshape<A, NR, NC>(static_cast<A&&>(a));
}

// ---- sums and products; an axis of extent 1 is broadcast
namespace fn {
struct Add {
  template <class R> static DB_FN R f(R x, R y) { return x + y; }
  template <class R> static DB_FN R da(R, R) { return 1; }
  template <class R> static DB_FN R db(R, R) { return 1; }
};
struct Mul {
  template <class R> static DB_FN R f(R x, R y) { return x * y; }
  template <class R> static DB_FN R da(R, R y) { return y; }
  template <class R> static DB_FN R db(R x, R) { return x; }
};
}  // namespace fn

template <class A, class B> struct Broadcast {
  static constexpr int extent(int a, int b) { return a == b ? a : a == 1 ? b : b == 1 ? a : -1; }
  static constexpr int r0 = extent(Bare<A>::rows, Bare<B>::rows), c0 = extent(Bare<A>::cols, Bare<B>::cols);
  static_assert(r0 > 0 && c0 > 0, "the shapes of the two operands do not broadcast: each axis must be equal or 1");
  static constexpr int rows = r0 > 0 ? r0 : Bare<A>::rows;  // after an error go on with A's shape: no cascade
  static constexpr int cols = c0 > 0 ? c0 : Bare<A>::cols;
  static constexpr bool same_a = Bare<A>::rows == rows && Bare<A>::cols == cols;
  static constexpr bool same_b = Bare<B>::rows == rows && Bare<B>::cols == cols;
  using FromA = fn::Spread<Bare<A>::rows, Bare<A>::cols, rows, cols>;
  using FromB = fn::Spread<Bare<B>::rows, Bare<B>::cols, rows, cols>;
};
template <class F, class A, class B> struct Zip : SmallLike<A, Broadcast<A, B>::rows, Broadcast<A, B>::cols> {
  using X = Broadcast<A, B>;
  using Base = SmallLike<A, X::rows, X::cols>;
  using R = typename Bare<A>::R;
  A a;
  B b;
  DB_FN void operands(R (&p)[Base::regs], R (&q)[Base::regs]) const {
    if constexpr (X::same_a) { DB_UNROLL for (int s = 0; s < Base::regs; ++s) p[s] = a.v[s]; }
    else this->l.template gather<typename X::FromA>(p, a.v);
    if constexpr (X::same_b) { DB_UNROLL for (int s = 0; s < Base::regs; ++s) q[s] = b.v[s]; }
    else this->l.template gather<typename X::FromB>(q, b.v);
  }
  DB_FN Zip(A&& x, B&& y) : Base(x.l), a(static_cast<A&&>(x)), b(static_cast<B&&>(y)) {
    R p[Base::regs], q[Base::regs];
    operands(p, q);
    DB_UNROLL for (int s = 0; s < Base::regs; ++s) this->v[s] = F::f(p[s], q[s]);
  }
  Zip(Zip&&) = default;
  DB_FN ~Zip() {
    if constexpr (Base::mode == Mode::Bwd) if (this->live) {
      R p[Base::regs], q[Base::regs], t[Base::regs];
      operands(p, q);
      DB_UNROLL for (int s = 0; s < Base::regs; ++s) t[s] = this->g[s] * F::da(p[s], q[s]);
      if constexpr (X::same_a) { DB_UNROLL for (int s = 0; s < Base::regs; ++s) a.g[s] += t[s]; }
      else this->l.template scatter_add<typename X::FromA>(a.g, t);
      DB_UNROLL for (int s = 0; s < Base::regs; ++s) t[s] = this->g[s] * F::db(p[s], q[s]);
      if constexpr (X::same_b) { DB_UNROLL for (int s = 0; s < Base::regs; ++s) b.g[s] += t[s]; }
      else this->l.template scatter_add<typename X::FromB>(b.g, t);
    }
  }
};
template <class A> struct Total : SmallLike<A, 1, 1> {
  using R = typename Bare<A>::R;
  A a;
  DB_FN explicit Total(A&& x) : SmallLike<A, 1, 1>(x.l), a(static_cast<A&&>(x)) {
    R t[Bare<A>::regs];
    DB_UNROLL for (int s = 0; s < Bare<A>::regs; ++s) {
      const R q = a.v[s];
      t[s] = this->l.template elem<Bare<A>::size>(s) < Bare<A>::size ? +q : R(0);
    }
    this->v[0] = this->l.total(t);
  }
  Total(Total&&) = default;
  DB_FN ~Total() {
    if constexpr (Total::mode == Mode::Bwd) if (this->live) {
      const R g = this->l.get(this->g, 0);
      DB_UNROLL for (int s = 0; s < Bare<A>::regs; ++s) a.g[s] += g;
    }
  }
};
template <SmallNode A> DB_FN auto total(A&& a) { return Total<A>(static_cast<A&&>(a)); }
template <SmallNode A, SmallNode B> DB_FN auto operator+(A&& a, B&& b) {
  return Zip<fn::Add, A, B>(static_cast<A&&>(a), static_cast<B&&>(b));
}
template <SmallNode A, SmallNode B> DB_FN auto operator*(A&& a, B&& b) {
  return Zip<fn::Mul, A, B>(static_cast<A&&>(a), static_cast<B&&>(b));
}

}  // namespace depthbench
