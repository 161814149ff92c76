// COMBINE: linear combinations of rows.   mix(A, H) + times(2.5, Y) + same(Z)   holds no data: it is evaluated when
// assigned to an output (fused with the store) or materialised by rows(...). Its reverse step is one REDUCE for the
// coefficients of all terms (<dout_j, h_i>) and one COMBINE for the rows.
#pragma once
#include "depthbench/kernel/rows.hpp"

namespace depthbench {

struct LinearTag {};
template <class T> concept LinearExpr = std::is_base_of_v<LinearTag, std::remove_cvref_t<T>>;

namespace fn {
template <int O, int N> struct Window {  // the N numbers from O of a longer list
  static constexpr int fan = 1;
  static DB_FN constexpr int pre(int j, int) { return j < N ? j + O : -1; }
};
}  // namespace fn

// out_j = sum_i A[j][i] h_i:   rows of A are destinations, its columns are the rows of H
template <class A, class H> struct MixTerm : LinearTag {
  using First = H;
  using Pack = typename H::Pack;
  static constexpr int outs = Bare<A>::rows, ins = H::rows, coefficients = outs * ins;
  static_assert(Bare<A>::cols == H::rows, "mix(A, H): A must have one column per row of H");
  A a;
  H& h;
  Pack c[outs][ins];  // the coefficients, spread over a pack
  DB_FN MixTerm(A&& x, H& y) : a(static_cast<A&&>(x)), h(y) { spread(); }
  DB_FN MixTerm(MixTerm&& o) : a(static_cast<A&&>(o.a)), h(o.h) { spread(); }
  DB_FN void spread() {
    DB_UNROLL for (int j = 0; j < outs; ++j) DB_UNROLL for (int i = 0; i < ins; ++i) c[j][i] = Pack::splat(a.at(j, i));
  }
  DB_FN void accumulate(Pack (&s)[outs], int p) const {
    DB_UNROLL for (int i = 0; i < ins; ++i) {
      const Pack x = h.value(i, p);
      DB_UNROLL for (int j = 0; j < outs; ++j) s[j] = s[j] + c[j][i] * x;
    }
  }
  // go.grad(j, p): adjoint rows of the result; part: this member's share of the coefficients' adjoints
  template <class Out, class R> DB_FN void reverse_rows(const Out& go, R* part) {
    using Team = typename H::Team;
    constexpr int pair = ins % 2 == 0 && outs <= 8 ? 2 : 1;  // rows at a time: the gradients are read half as often
    typename Team::Acc all[coefficients];
    DB_UNROLL for (int i = 0; i < ins; i += pair) {
      typename Team::Acc acc[pair][outs];
      DB_UNROLL for (int r = 0; r < pair; ++r) DB_UNROLL for (int j = 0; j < outs; ++j) acc[r][j] = Team::acc0();
      DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) {
        Pack s[pair], x[pair];
        DB_UNROLL for (int r = 0; r < pair; ++r) {
          s[r] = h.grad(i + r, p);
          x[r] = h.value(i + r, p);
        }
        DB_UNROLL for (int j = 0; j < outs; ++j) {
          const Pack gj = go.grad(j, p);
          DB_UNROLL for (int r = 0; r < pair; ++r) {
            Team::fma(acc[r][j], gj, x[r]);
            s[r] = s[r] + c[j][i + r] * gj;
          }
        }
        DB_UNROLL for (int r = 0; r < pair; ++r) h.set_grad(i + r, p, s[r]);
      }
      DB_UNROLL for (int r = 0; r < pair; ++r) DB_UNROLL for (int j = 0; j < outs; ++j) all[j * ins + i + r] = acc[r][j];
    }
    h.touched();
    R sums[coefficients];
    Team::hsums(all, sums);
    DB_UNROLL for (int q = 0; q < coefficients; ++q) part[q] = sums[q];
  }
  template <int O, class R, int NC> DB_FN void reverse_coefficients(const R (&sums)[NC]) {
    a.l.template scatter_add<fn::Window<O, coefficients>>(a.g, sums);
  }
};
template <class H> struct SameTerm : LinearTag {
  using First = H;
  using Pack = typename H::Pack;
  static constexpr int outs = H::rows, ins = H::rows, coefficients = 0;
  H& h;
  Pack c;  // a plain number, spread over a pack
  DB_FN SameTerm(H& y, typename H::R factor) : h(y), c(Pack::splat(factor)) {}
  DB_FN void accumulate(Pack (&s)[outs], int p) const {
    DB_UNROLL for (int j = 0; j < outs; ++j) s[j] = s[j] + c * h.value(j, p);
  }
  template <class Out, class R> DB_FN void reverse_rows(const Out& go, R*) {
    DB_UNROLL for (int j = 0; j < outs; ++j) DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p)
      h.set_grad(j, p, h.grad(j, p) + c * go.grad(j, p));
    h.touched();
  }
  template <int, class R, int NC> DB_FN void reverse_coefficients(const R (&)[NC]) {}
};
template <class Lhs, class Rhs> struct LinearSum : LinearTag {
  using First = typename Lhs::First;
  using Pack = typename First::Pack;
  static constexpr int outs = Lhs::outs, coefficients = Lhs::coefficients + Rhs::coefficients;
  static_assert(Lhs::outs == Rhs::outs, "mix + mix: the terms have a different number of output rows");
  Lhs lhs;
  Rhs rhs;
  DB_FN LinearSum(Lhs&& a, Rhs&& b) : lhs(static_cast<Lhs&&>(a)), rhs(static_cast<Rhs&&>(b)) {}
  DB_FN LinearSum(LinearSum&& o) : lhs(static_cast<Lhs&&>(o.lhs)), rhs(static_cast<Rhs&&>(o.rhs)) {}
  DB_FN void accumulate(Pack (&s)[outs], int p) const { lhs.accumulate(s, p); rhs.accumulate(s, p); }
  template <class Out, class R> DB_FN void reverse_rows(const Out& go, R* part) {
    lhs.reverse_rows(go, part);
    rhs.reverse_rows(go, part + Lhs::coefficients);
  }
  template <int O, class R, int NC> DB_FN void reverse_coefficients(const R (&sums)[NC]) {
    lhs.template reverse_coefficients<O>(sums);
    rhs.template reverse_coefficients<O + Lhs::coefficients>(sums);
  }
};
template <class A, class H> DB_FN auto& first_rows(const MixTerm<A, H>& t) { return t.h; }
template <class H> DB_FN auto& first_rows(const SameTerm<H>& t) { return t.h; }
template <class L, class R> DB_FN auto& first_rows(const LinearSum<L, R>& t) { return first_rows(t.lhs); }

template <SmallNode A, RowsNode H> DB_FN auto mix(A&& a, H& h) { return MixTerm<A, H>(static_cast<A&&>(a), h); }
template <SmallNode A, RowsNode H> requires(!std::is_lvalue_reference_v<H>)
void mix(A&&, H&&) = delete;  // name the rows first: auto x = rows(...)
template <RowsNode H> DB_FN auto same(H& h) { return SameTerm<H>(h, typename H::R(1)); }
template <RowsNode H> DB_FN auto times(double factor, H& h) { return SameTerm<H>(h, typename H::R(factor)); }
template <LinearExpr L, LinearExpr R> requires(!std::is_lvalue_reference_v<L> && !std::is_lvalue_reference_v<R>)
DB_FN auto operator+(L&& l, R&& r) { return LinearSum<L, R>(static_cast<L&&>(l), static_cast<R&&>(r)); }

template <class E, class Out> DB_FN void reverse_linear(E& e, const Out& go) {
  auto& team = first_rows(e).team;
  using Team = std::remove_cvref_t<decltype(team)>;
  using R = typename Team::real;
  if constexpr (E::coefficients > 0) {
    R part[E::coefficients], sums[Team::Lanes::template regs<E::coefficients>];
    e.reverse_rows(go, part);
    team.sum(part, sums);
    e.template reverse_coefficients<0>(sums);
  } else {
    e.reverse_rows(go, static_cast<R*>(nullptr));
  }
}

// rows(expression): the combination as rows that later nodes may use
template <class E> struct Made : OwnRows<typename E::First::Team, E::outs, E::First::mode> {
  using Base = OwnRows<typename E::First::Team, E::outs, E::First::mode>;
  using Pack = typename Base::Pack;
  E e;
  DB_FN explicit Made(E&& x) : Base(first_rows(x).team), e(static_cast<E&&>(x)) {
    DB_UNROLL_SIMT for (int p = 0; p < this->team.packs(); ++p) {
      Pack s[E::outs];
      DB_UNROLL for (int j = 0; j < E::outs; ++j) s[j] = Pack::splat(0);
      e.accumulate(s, p);
      DB_UNROLL for (int j = 0; j < E::outs; ++j) this->v[j][p] = s[j];
    }
  }
  DB_FN ~Made() {
    if constexpr (Base::mode == Mode::Bwd) reverse_linear(e, *this);
  }
};
template <LinearExpr E> DB_FN auto rows(E&& e) { return Made<E>(static_cast<E&&>(e)); }

// scaled(s, H, w): s_i h_i * w[channel], e.g. RMSNorm with s = rsqrt(mean square) and its gain w
template <class S, class H, class W> struct Scaled : OwnRows<typename H::Team, H::rows, H::mode> {
  using Base = OwnRows<typename H::Team, H::rows, H::mode>;
  using Pack = typename Base::Pack;
  using R = typename Base::R;
  static_assert(Bare<S>::rows == H::rows && Bare<S>::cols == 1, "scaled: one factor per row");
  static_assert(W::count == 1, "scaled: one vector of gains");
  S s;
  H& h;
  W& w;
  DB_FN Scaled(S&& a, H& x, W& y) : Base(x.team), s(static_cast<S&&>(a)), h(x), w(y) {
    [[maybe_unused]] const auto norm = norm_scope(this->team);
    DB_UNROLL for (int i = 0; i < H::rows; ++i) {
      const Pack c = Pack::splat(s.at(i));
      DB_UNROLL_SIMT for (int p = 0; p < this->team.packs(); ++p) this->v[i][p] = c * h.value(i, p) * w.at(0, p);
    }
  }
  DB_FN ~Scaled() {
    if constexpr (H::mode == Mode::Bwd) {
      using Team = typename H::Team;
      [[maybe_unused]] const auto norm = norm_scope(this->team);
      R part[H::rows], sums[Bare<S>::regs];
      DB_UNROLL for (int i = 0; i < H::rows; ++i) {
        auto a = Team::acc0();
        const Pack c = Pack::splat(s.at(i));
        DB_UNROLL_SIMT for (int p = 0; p < this->team.packs(); ++p) {
          const Pack dy = this->grad(i, p), x = h.value(i, p), dyw = dy * w.at(0, p);
          Team::fma(a, dyw, x);
          h.set_grad(i, p, h.grad(i, p) + c * dyw);
          w.g[0][p] = w.g[0][p] + c * dy * x;
        }
        part[i] = Team::hsum(a);
      }
      h.touched();
      this->team.sum(part, sums);
      DB_UNROLL for (int i = 0; i < Bare<S>::regs; ++i) s.g[i] += sums[i];
    }
  }
};
template <SmallNode S, RowsNode H, class W> DB_FN auto scaled(S&& s, H& h, W& w) {
  return Scaled<S, H, W>(static_cast<S&&>(s), h, w);
}

}  // namespace depthbench
