// Manifold-constrained Hyper-Connections (Xie et al. 2025, arXiv 2512.24880), n streams. Four stages, since the projection
// of n d channels to n^2 + 2 n numbers is a matrix product:
//   sum of squares | product z = phi^T vec(X) | coefficients c | mix
// Coefficients of a token, in this order: n pre (read), n post (write), n n res. res[o][i] is the weight into stream o from
// stream i; rows are destinations. Arrays over tokens have the tokens last, (n^2 + 2 n, N).
#pragma once
#include <cstdint>

#include "depthbench/kernel/program.hpp"

namespace depthbench {

// H (n, n) from logits: a softmax of every row, + eps; columns divided by (their sum + eps); then iterations - 1 times
// rows and columns. (Sinkhorn & Knopp 1967; this order and eps are Liger-Kernel's.) A number is a pack of tokens.
// The reverse step needs the divisors, and rebuilds the iterates by multiplying back. They stand apart: an array with a
// run-time index would keep everything beside it out of a GPU thread's registers.
template <int n, class P> struct SinkhornDivisors {
  static constexpr int max_iterations = 64;
  P of[2 * max_iterations][n];        // of every half step: columns first
};
template <int n, class P> struct Sinkhorn {
  using R = typename P::real;
  P y[n][n];                          // the iterate
  P softmax[n][n];                    // of the rows, before eps
  SinkhornDivisors<n, P>* divisors;   // null: no reverse step
  int iterations;
  R eps;

  DB_FN Sinkhorn(const P (&z)[n][n], int iterations_, R eps_, SinkhornDivisors<n, P>* keep)
      : divisors(keep), iterations(iterations_), eps(eps_) {
    DB_UNROLL_SIMT for (int o = 0; o < n; ++o) {
      P top = z[o][0], sum = P::splat(0);
      DB_UNROLL_SIMT for (int i = 1; i < n; ++i) top = math::max(top, z[o][i]);
      DB_UNROLL_SIMT for (int i = 0; i < n; ++i) {
        softmax[o][i] = math::exp(z[o][i] - top);
        sum = sum + softmax[o][i];
      }
      const P inverse = P::splat(1) / sum;
      DB_UNROLL_SIMT for (int i = 0; i < n; ++i) {
        softmax[o][i] = softmax[o][i] * inverse;
        y[o][i] = softmax[o][i] + P::splat(eps);
      }
    }
    for (int t = 0; t < halves(); ++t) t % 2 == 0 ? divide<true>(t) : divide<false>(t);
  }
  // Operations of one token: forward, and reverse.
  static constexpr int flops(int iterations) { return 6 * n * n + (2 * iterations - 1) * n * (2 * n + 1); }
  static constexpr int reverse_flops(int iterations) { return (2 * iterations - 1) * n * (5 * n + 1) + 4 * n * n; }

  // g: dL/dH on entry, dL/dz on exit. Uses up the iterate.
  DB_FN void reverse(P (&g)[n][n]) {
    for (int t = halves() - 1; t >= 0; --t) t % 2 == 0 ? divide_reverse<true>(g, t) : divide_reverse<false>(g, t);
    DB_UNROLL_SIMT for (int o = 0; o < n; ++o) {
      P s = P::splat(0);
      DB_UNROLL_SIMT for (int i = 0; i < n; ++i) s = s + g[o][i] * softmax[o][i];
      DB_UNROLL_SIMT for (int i = 0; i < n; ++i) g[o][i] = softmax[o][i] * (g[o][i] - s);
    }
  }

 private:
  DB_FN int halves() const { return 2 * iterations - 1; }  // columns, then (rows, columns) again and again
  template <bool columns> static DB_FN P& at(P (&x)[n][n], int line, int k) { return columns ? x[k][line] : x[line][k]; }
  template <bool columns> DB_FN void divide(int t) {
    DB_UNROLL_SIMT for (int line = 0; line < n; ++line) {
      P s = P::splat(eps);
      DB_UNROLL_SIMT for (int k = 0; k < n; ++k) s = s + at<columns>(y, line, k);
      if (divisors) divisors->of[t][line] = s;
      const P inverse = P::splat(1) / s;
      DB_UNROLL_SIMT for (int k = 0; k < n; ++k) at<columns>(y, line, k) = at<columns>(y, line, k) * inverse;
    }
  }
  template <bool columns> DB_FN void divide_reverse(P (&g)[n][n], int t) {
    DB_UNROLL_SIMT for (int line = 0; line < n; ++line) {
      const P s = divisors->of[t][line], inverse = P::splat(1) / s;
      P dot = P::splat(0);
      DB_UNROLL_SIMT for (int k = 0; k < n; ++k) dot = dot + at<columns>(g, line, k) * at<columns>(y, line, k);
      DB_UNROLL_SIMT for (int k = 0; k < n; ++k) {
        at<columns>(g, line, k) = (at<columns>(g, line, k) - dot) * inverse;
        at<columns>(y, line, k) = at<columns>(y, line, k) * s;
      }
    }
  }
};

// Coefficients from projections, a pack of tokens at a time:
//   m = z / sqrt(squares / (n d) + eps);  pre = sigmoid(a_pre m + b), post = 2 sigmoid(a_post m + b), res = Sinkhorn(a_res m + b)
template <int n, class R> struct MhcCoefficients {
  static constexpr int count = n * n + 2 * n;
  const R* z;                // (count, N)
  const R* squares;          // (N)          <X, X> over all streams
  const R *alpha[3], *bias;  // pre, post, res; (count)
  std::int64_t tokens;
  R nd, eps, sinkhorn_eps;
  int iterations;

  int flops() const { return 4 + 3 * count; }  // the arguments of the sigmoids and of Sinkhorn

  static DB_FN int group(int k) { return k < n ? 0 : k < 2 * n ? 1 : 2; }
  template <class P> DB_FN P inverse_rms(std::size_t i, int left) const {
    P r = load_pack<P>(squares + i, left);
    for (int k = 0; k < P::width; ++k) r.set(k, math::rsqrt(r.get(k) / nd + eps));
    return r;
  }
  template <class P> DB_FN P argument(int k, std::size_t i, int left, P r) const {
    return P::splat(*alpha[group(k)]) * (load_pack<P>(z + k * tokens + i, left) * r) + P::splat(bias[k]);
  }
  template <class P> DB_FN void logits(P (&x)[n][n], std::size_t i, int left, P r) const {
    DB_UNROLL_SIMT for (int o = 0; o < n; ++o) DB_UNROLL_SIMT for (int s = 0; s < n; ++s) x[o][s] = argument(2 * n + o * n + s, i, left, r);
  }
};
template <int n, class R> struct MhcForward {
  static constexpr int simt_width = 1;  // a GPU thread has registers for the matrices of one token
  MhcCoefficients<n, R> in;
  R* c;  // (count, N)
  int moves() const { return 2 * in.count + 1; }
  int flops() const { return in.flops() + 9 * n + Sinkhorn<n, cpu_pack<R>>::flops(in.iterations); }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    const P r = in.template inverse_rms<P>(i, left);
    DB_UNROLL_SIMT for (int k = 0; k < 2 * n; ++k)
      store_pack(c + k * in.tokens + i, P::splat(k < n ? R(1) : R(2)) * math::sigmoid(in.argument(k, i, left, r)), left);
    P x[n][n];
    in.logits(x, i, left, r);
    const Sinkhorn<n, P> h(x, in.iterations, in.sinkhorn_eps, nullptr);
    DB_UNROLL_SIMT for (int o = 0; o < n; ++o) DB_UNROLL_SIMT for (int s = 0; s < n; ++s)
      store_pack(c + (2 * n + o * n + s) * in.tokens + i, h.y[o][s], left);
  }
};
// Gradients of z and squares, and of every argument, whose sums over the tokens give those of alpha and bias.
template <int n, class R> struct MhcBackward {
  static constexpr int simt_width = 1;  // a GPU thread has registers for the matrices of one token
  MhcCoefficients<n, R> in;
  const R* dc;               // (count, N)
  R *darg, *dz, *dsquares;   // (count, N) (count, N) (N)
  int moves() const { return 4 * in.count + 2; }
  int flops() const {
    using S = Sinkhorn<n, cpu_pack<R>>;
    return in.flops() + 15 * n + S::flops(in.iterations) + S::reverse_flops(in.iterations) + 4 * in.count + 4;
  }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    const P r = in.template inverse_rms<P>(i, left), one = P::splat(1);
    P dr = P::splat(0);
    const auto pass_on = [&](int k, P g) {
      store_pack(darg + k * in.tokens + i, g, left);
      const P dm = P::splat(*in.alpha[in.group(k)]) * g;
      dr = dr + dm * load_pack<P>(in.z + k * in.tokens + i, left);
      store_pack(dz + k * in.tokens + i, dm * r, left);
    };
    DB_UNROLL_SIMT for (int k = 0; k < 2 * n; ++k) {
      const P s = math::sigmoid(in.argument(k, i, left, r));
      pass_on(k, P::splat(k < n ? R(1) : R(2)) * load_pack<P>(dc + k * in.tokens + i, left) * s * (one - s));
    }
    P x[n][n], g[n][n];
    in.logits(x, i, left, r);
    SinkhornDivisors<n, P> divisors;
    Sinkhorn<n, P> h(x, in.iterations, in.sinkhorn_eps, &divisors);
    DB_UNROLL_SIMT for (int o = 0; o < n; ++o) DB_UNROLL_SIMT for (int s = 0; s < n; ++s)
      g[o][s] = load_pack<P>(dc + (2 * n + o * n + s) * in.tokens + i, left);
    h.reverse(g);
    DB_UNROLL_SIMT for (int o = 0; o < n; ++o) DB_UNROLL_SIMT for (int s = 0; s < n; ++s) pass_on(2 * n + o * n + s, g[o][s]);
    store_pack(dsquares + i, P::splat(R(-0.5) / in.nd) * r * r * r * dr, left);
  }
};

// sums (2 count): of darg_k over the tokens, for the bias; of darg_k m_k, m = z / rms, for the alphas. A team takes row k.
template <class R> struct MhcSums {
  static constexpr int simt_width = 1;
  const R *darg, *z, *squares;
  int count;
  double nd, eps;
  R* sums;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    const P one = P::splat(1);
    for (std::int64_t k = first; k < last; ++k) {
      auto b = Team::acc0(), a = Team::acc0();
      for (int t = team.begin(); t < team.d; t += team.step()) {
        const int left = team.d - t;
        const P g = load_pack<P>(darg + k * team.d + t, left);
        P m = load_pack<P>(squares + t, left);
        for (int i = 0; i < P::width; ++i) m.set(i, math::rsqrt(m.get(i) / nd + eps));
        Team::fma(b, g, one);
        Team::fma(a, g, m * load_pack<P>(z + k * team.d + t, left));
      }
      typename Team::real part[2] = {Team::hsum(b), Team::hsum(a)}, sum[Team::Lanes::template regs<2>];
      team.sum(part, sum);
      const auto of_bias = team.lanes().get(sum, 0), of_alpha = team.lanes().get(sum, 1);
      if (team.leader()) {
        sums[k] = R(of_bias);
        sums[count + k] = R(of_alpha);
      }
    }
  }
};
// to += from, all of `from` into one number or each into its own
template <class R> struct AddEach {
  const R* from;
  R* to;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    for (std::size_t k = first; k < first + count; ++k) to[k] += from[k];
  }
};
template <class R> struct AddTotal {
  const R* from;
  R* to;
  int n;
  DB_FN void operator()(std::size_t, std::size_t) const {
    for (int k = 0; k < n; ++k) *to += from[k];
  }
};

// ---- the row programs
template <int n> struct StreamSquares {
  using params = Leaves<>;
  using tokens = Leaves<Rows<n>, OutToken<1>>;  // x -> squares
  static constexpr int simt_packs = 4;          // one row of n d: wide, and nothing else to hold
  DB_FN void operator()(auto&, auto& x, auto& squares) const { squares = total(sum_squares(x)); }
};
template <int n> struct MhcRead {
  using params = Leaves<Channels<1>>;                                     // g
  using tokens = Leaves<Rows<n>, TokenColumn<1, n * n + 2 * n>, OutRows<1>>;  // x, c -> u
  double norm_eps;
  DB_FN void operator()(auto&, auto& g, auto& x, auto& c, auto& u) const {
    auto h = rows(mix(columns<0, n>(c), x));                                          // (1, d)
    auto v = scaled(rsqrt(sum_squares(h) / h.dim() + norm_eps), h, g);                // (1, d)
    u = v;
  }
};
// x'_o = sum_i res[o][i] x_i + post[o] y, and the squares that the next coefficients need
template <int n> struct MhcWrite {
  using params = Leaves<>;
  using tokens = Leaves<Rows<n>, TokenColumn<1, n * n + 2 * n>, Rows<1>, OutRows<n>, OutToken<1>>;  // x, c, y -> x', squares
  DB_FN void operator()(auto&, auto& x, auto& c, auto& y, auto& x_next, auto& squares) const {
    auto z = rows(mix(reshape<n, n>(columns<2 * n, n * n>(c)), x) + mix(reshape<n, 1>(columns<n, n>(c)), y));  // (n, d)
    x_next = z;
    squares = total(sum_squares(z));
  }
};

}  // namespace depthbench
