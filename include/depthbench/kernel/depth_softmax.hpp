// Attention over depth: o_l = sum_s p_ls v_s,  p_l = softmax over the sources s of  z_ls = <w_l g_l, v_s> / rms(v_s).
// The logits of a source for all later mixers are one matrix product when the source is made (the queries are
// parameters), so a read is a pure stream over the sources. The backward pass pulls: when it reaches the producer of
// v_s, one pass over the gradients dO_l of its consumers gives dv_s,
//   dz_ls = p_ls (<dO_l, v_s> - D_l),   D_l = <dO_l, o_l>
//   dv_s  = sum_l p_ls dO_l  +  r_s sum_l dz_ls w_l g_l  -  (sum_l dz_ls z_ls) r_s^2 / d v_s,      r_s = 1 / rms(v_s)
// (the second term is a matrix product): each dO_l is read once, dv_s is written once, nothing is read and added to.
// Arrays over tokens have the tokens last, (mixers, N), so that softmaxes run a pack of tokens at a time.
#pragma once
#include <cstdint>

#include "depthbench/kernel/pack_math.hpp"

namespace depthbench {

inline constexpr int depth_block = 4;  // sources, or consumers, handled in one pass over a token's channels
inline constexpr int depth_tile = 16;  // tokens of a source visited together: one visit reads 16 rows in a stream

// r_t = 1 / sqrt(mean_c v_tc^2 + eps)                                         v (N, d) -> r (N)
template <class Team, class R> DB_FN void depth_inverse_rms(Team& team, const R* v, R* r, R eps, int first, int last) {
  using P = typename Team::Pack;
  for (int t = first; t < last; ++t) {
    auto a = Team::acc0();
    for (int c = team.begin(); c < team.d; c += team.step()) {
      const P x = load_pack<P>(v + std::int64_t(t) * team.d + c, team.d - c);
      Team::fma(a, x, x);
    }
    R part[1] = {Team::hsum(a)}, sum[1];
    team.sum(part, sum);
    const R total = team.lanes().get(sum, 0);
    if (team.leader()) r[t] = math::rsqrt(total / R(team.d) + eps);
  }
}

// What one mixer sees of one source.
template <class R> struct DepthSource {
  const R* v;      // (N, d)
  const R* r;      // (N)      1 / rms
  const R* logit;  // (N)      <w g, v>, not yet times r
};

// p (m, N) = softmax over the m sources; lse (N). Elementwise over tokens.
template <class R> struct DepthProbabilities {
  const DepthSource<R>* source;
  int m;
  std::int64_t n;
  R* p;
  R* lse;
  int moves() const { return 2 * m + 1; }  // the r of all sources stay in cache
  int flops() const { return 7 * m + 2; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    P top = load_pack<P>(source[0].logit + i, left) * load_pack<P>(source[0].r + i, left);
    for (int s = 1; s < m; ++s) top = math::max(top, load_pack<P>(source[s].logit + i, left) * load_pack<P>(source[s].r + i, left));
    P sum = P::splat(0);
    for (int s = 0; s < m; ++s) {
      const P e = math::exp(load_pack<P>(source[s].logit + i, left) * load_pack<P>(source[s].r + i, left) - top);
      sum = sum + e;
      store_pack(p + s * n + i, e, left);
    }
    const P inverse = P::splat(1) / sum;
    for (int s = 0; s < m; ++s) store_pack(p + s * n + i, load_pack<P>(p + s * n + i, left) * inverse, left);
    P log_sum = top;
    for (int k = 0; k < P::width; ++k) log_sum.set(k, top.get(k) + math::log(sum.get(k)));
    store_pack(lse + i, log_sum, left);
  }
};

// o_t = sum_s p_st v_st for the tokens of a tile                              p (m, N) -> o (N, d)
template <class Team, class R>
DB_FN void depth_mix(Team& team, const DepthSource<R>* source, int m, const R* p, std::int64_t n, R* o, int first, int last) {
  using P = typename Team::Pack;
  for (int s0 = 0; s0 < m; s0 += depth_block) {
    const int count = m - s0 < depth_block ? m - s0 : depth_block;
    for (int t = first; t < last; ++t) {
      const std::int64_t row = std::int64_t(t) * team.d;
      P w[depth_block];
      const R* v[depth_block];
      DB_UNROLL for (int b = 0; b < depth_block; ++b) {
        const int s = s0 + (b < count ? b : 0);
        w[b] = P::splat(b < count ? R(p[s * n + t]) : R(0));
        v[b] = source[s].v + row;
      }
      for (int c = team.begin(); c < team.d; c += team.step()) {
        const int left = team.d - c;
        P acc = s0 == 0 ? P::splat(0) : load_pack<P>(o + row + c, left);
        if (count == depth_block) {
          DB_UNROLL for (int b = 0; b < depth_block; ++b) acc = acc + w[b] * load_pack<P>(v[b] + c, left);
        } else {
          for (int b = 0; b < count; ++b) acc = acc + w[b] * load_pack<P>(v[b] + c, left);
        }
        store_pack(o + row + c, acc, left);
      }
    }
  }
}

// D_t = <a_t, b_t>
template <class Team, class R> DB_FN void depth_row_dots(Team& team, const R* a, const R* b, R* dots, int first, int last) {
  using P = typename Team::Pack;
  for (int t = first; t < last; ++t) {
    auto acc = Team::acc0();
    const std::int64_t row = std::int64_t(t) * team.d;
    for (int c = team.begin(); c < team.d; c += team.step())
      Team::fma(acc, load_pack<P>(a + row + c, team.d - c), load_pack<P>(b + row + c, team.d - c));
    R part[1] = {Team::hsum(acc)}, sum[1];
    team.sum(part, sum);
    const R total = team.lanes().get(sum, 0);
    if (team.leader()) dots[t] = total;
  }
}

// One consumer of a source, in the backward pass.
template <class R> struct DepthUse {
  const R* go;     // (N, d)   gradient of the consumer's output
  const R* lse;    // (N)
  const R* dot;    // (N)      D_l
  const R* logit;  // (N)      of this source for that consumer, not yet times r
};

// p (m, N): the probability of this source in each of its m consumers.
template <class R> struct DepthPullProbabilities {
  const DepthUse<R>* use;
  const R* r;
  int m;
  std::int64_t n;
  R* p;
  int moves() const { return 3 * m + 1; }
  int flops() const { return 3 * m; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    const P rr = load_pack<P>(r + i, left);
    for (int l = 0; l < m; ++l)
      store_pack(p + l * n + i, math::exp(load_pack<P>(use[l].logit + i, left) * rr - load_pack<P>(use[l].lse + i, left)), left);
  }
};

// g (m, N) holds p on entry and dz_l r on exit; gv (N, d) (+)= sum_l p_l dO_l - (sum_l dz_l z_l) r^2 / d v.
// last - first <= tile
template <int tile, class Team, class R>
DB_FN void depth_pull(Team& team, const R* v, const R* r, const DepthUse<R>* use, int m, R* g, std::int64_t n, R* gv, bool add,
                      int first, int last) {
  using P = typename Team::Pack;
  R norm_path[tile] = {};  // sum_l dz_l z_l
  for (int l0 = 0; l0 < m; l0 += depth_block) {
    const int count = m - l0 < depth_block ? m - l0 : depth_block;
    for (int t = first; t < last; ++t) {
      const std::int64_t row = std::int64_t(t) * team.d;
      R p[depth_block];
      P w[depth_block];
      const R* go[depth_block];
      typename Team::Acc acc[depth_block];
      DB_UNROLL for (int b = 0; b < depth_block; ++b) {
        const int l = l0 + (b < count ? b : 0);
        p[b] = b < count ? R(g[l * n + t]) : R(0);
        w[b] = P::splat(p[b]);
        go[b] = use[l].go + row;
        acc[b] = Team::acc0();
      }
      for (int c = team.begin(); c < team.d; c += team.step()) {
        const int left = team.d - c;
        const P x = load_pack<P>(v + row + c, left);
        P sum = l0 == 0 && !add ? P::splat(0) : load_pack<P>(gv + row + c, left);
        if (count == depth_block) {
          DB_UNROLL for (int b = 0; b < depth_block; ++b) {
            const P y = load_pack<P>(go[b] + c, left);
            Team::fma(acc[b], y, x);
            sum = sum + w[b] * y;
          }
        } else {
          for (int b = 0; b < count; ++b) {
            const P y = load_pack<P>(go[b] + c, left);
            Team::fma(acc[b], y, x);
            sum = sum + w[b] * y;
          }
        }
        store_pack(gv + row + c, sum, left);
      }
      R part[depth_block], sums[Team::Lanes::template regs<depth_block>];
      Team::hsums(acc, part);
      team.sum(part, sums);
      DB_UNROLL for (int b = 0; b < depth_block; ++b) {
        const R dot = team.lanes().get(sums, b);
        if (b < count) {
          const DepthUse<R>& u = use[l0 + b];
          const R dz = p[b] * (dot - u.dot[t]);
          norm_path[tile == 1 ? 0 : t - first] += dz * u.logit[t] * r[t];
          if (team.leader()) g[(l0 + b) * n + t] = dz * r[t];
        }
      }
    }
  }
  for (int t = first; t < last; ++t) {
    const std::int64_t row = std::int64_t(t) * team.d;
    const P k = P::splat(-norm_path[tile == 1 ? 0 : t - first] * r[t] * r[t] / R(team.d));
    for (int c = team.begin(); c < team.d; c += team.step()) {
      const int left = team.d - c;
      store_pack(gv + row + c, load_pack<P>(gv + row + c, left) + k * load_pack<P>(v + row + c, left), left);
    }
  }
}

// ---- the bodies that a device runs over tiles of tokens
template <class R> struct DepthInverseRms {
  const R* v;
  R* r;
  R eps;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const { depth_inverse_rms(team, v, r, eps, first, last); }
};
template <class R> struct DepthMix {
  const DepthSource<R>* source;
  int m;
  const R* p;
  std::int64_t n;
  R* o;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const { depth_mix(team, source, m, p, n, o, first, last); }
};
template <class R> struct DepthRowDots {
  const R *a, *b;
  R* dots;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const { depth_row_dots(team, a, b, dots, first, last); }
};
template <class R> struct DepthPull {
  const R *v, *r;
  const DepthUse<R>* use;
  int m;
  R* g;
  std::int64_t n;
  R* gv;
  bool add;
  // A thread of a GPU keeps its sums in a register, which has no index: token by token there.
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    if constexpr (Team::simt) {
      for (int t = first; t < last; ++t) depth_pull<1>(team, v, r, use, m, g, n, gv, add, t, t + 1);
    } else {
      depth_pull<depth_tile>(team, v, r, use, m, g, n, gv, add, first, last);
    }
  }
};

}  // namespace depthbench
