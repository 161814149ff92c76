// Stream mixing for any number of streams, one step at a time: what the fused programs of hyper_connection.hpp do in
// one pass. It is their oracle in tests, and runs in their place for numbers of streams they are not compiled for.
//   x (N, n, d)   c: the weight into destination j from stream s of token t is c[MixShape::at(t, s, j)]
#pragma once
#include <cstdint>

#include "depthbench/kernel/pack_math.hpp"

namespace depthbench {

// Where coefficients lie: (N, n, w) for HC, (n^2 + 2 n, N) for mHC.
struct MixLayout {
  std::int64_t offset, token, source, destination;
};
struct MixShape {
  int tokens, n, d, count;  // count: destinations
  MixLayout c;
  DB_FN std::int64_t at(std::int64_t t, int s, int j) const { return c.offset + t * c.token + s * c.source + j * c.destination; }
};

// y_j = sum_s c_js x_s                                                       -> y (N, count, d)
template <class R> struct MixForward {
  MixShape m;
  const R *c, *x;
  R* y;
  template <class Team> DB_FN void operator()(Team& team, int begin, int end) const {
    using P = typename Team::Pack;
    for (std::int64_t t = begin; t < end; ++t) for (int j = 0; j < m.count; ++j) for (int i = team.begin(); i < m.d; i += team.step()) {
      P sum = P::splat(0);
      for (int s = 0; s < m.n; ++s)
        sum = sum + P::splat(c[m.at(t, s, j)]) * load_pack<P>(x + (t * m.n + s) * m.d + i, m.d - i);
      store_pack(y + (t * m.count + j) * m.d + i, sum, m.d - i);
    }
  }
};
// dc_js += <dy_j, x_s>;   dx_s (+)= sum_j c_js dy_j
template <class R> struct MixBackward {
  MixShape m;
  const R *c, *x, *dy;
  R *dc, *dx;
  bool add;
  template <class Team> DB_FN void operator()(Team& team, int begin, int end) const {
    using P = typename Team::Pack;
    for (std::int64_t t = begin; t < end; ++t) for (int s = 0; s < m.n; ++s) {
      const std::int64_t row = (t * m.n + s) * m.d;
      for (int j = 0; j < m.count; ++j) {
        auto acc = Team::acc0();
        for (int i = team.begin(); i < m.d; i += team.step()) {
          const P g = load_pack<P>(dy + (t * m.count + j) * m.d + i, m.d - i);
          Team::fma(acc, g, load_pack<P>(x + row + i, m.d - i));
          P sum = j == 0 && !add ? P::splat(0) : load_pack<P>(dx + row + i, m.d - i);
          store_pack(dx + row + i, sum + P::splat(c[m.at(t, s, j)]) * g, m.d - i);
        }
        R part[1] = {Team::hsum(acc)}, total[1];
        team.sum(part, total);
        const R sum = team.lanes().get(total, 0);
        if (team.leader()) dc[m.at(t, s, j)] += sum;
      }
    }
  }
};

// y_s = x_s + c_0s b,   b (N, d)                                             -> y (N, n, d)
template <class R> struct SpreadForward {
  MixShape m;
  const R *c, *x, *b;
  R* y;
  template <class Team> DB_FN void operator()(Team& team, int begin, int end) const {
    using P = typename Team::Pack;
    for (std::int64_t t = begin; t < end; ++t) for (int s = 0; s < m.n; ++s) for (int i = team.begin(); i < m.d; i += team.step()) {
      const std::int64_t at = (t * m.n + s) * m.d + i;
      store_pack(y + at, load_pack<P>(x + at, m.d - i) + P::splat(c[m.at(t, s, 0)]) * load_pack<P>(b + t * m.d + i, m.d - i), m.d - i);
    }
  }
};
// dc_0s += <dy_s, b>;   db (+)= sum_s c_0s dy_s
template <class R> struct SpreadBackward {
  MixShape m;
  const R *c, *b, *dy;
  R *dc, *db;
  bool add;
  template <class Team> DB_FN void operator()(Team& team, int begin, int end) const {
    using P = typename Team::Pack;
    for (std::int64_t t = begin; t < end; ++t) for (int s = 0; s < m.n; ++s) {
      auto acc = Team::acc0();
      const std::int64_t at = m.at(t, s, 0);
      for (int i = team.begin(); i < m.d; i += team.step()) {
        const P g = load_pack<P>(dy + (t * m.n + s) * m.d + i, m.d - i);
        Team::fma(acc, g, load_pack<P>(b + t * m.d + i, m.d - i));
        const P sum = s == 0 && !add ? P::splat(0) : load_pack<P>(db + t * m.d + i, m.d - i);
        store_pack(db + t * m.d + i, sum + P::splat(c[at]) * g, m.d - i);
      }
      R part[1] = {Team::hsum(acc)}, total[1];
      team.sum(part, total);
      const R sum = team.lanes().get(total, 0);
      if (team.leader()) dc[at] += sum;
    }
  }
};

// HC's coefficients, one number at a time:  c[s][j] = table[s][j] + scale[j] tanh(z[s][j]);  n w numbers a token
template <class R> struct HyperCoefficients {
  const R *z, *scale, *table;
  R* c;
  std::int64_t nw, w;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i) c[i] = table[i % nw] + scale[i % w] * math::tanh(z[i]);
  }
};
// dz += dc scale (1 - tanh(z)^2)
template <class R> struct HyperCoefficientsDz {
  const R *z, *scale, *dc;
  R* dz;
  std::int64_t w;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i) {
      const R t = math::tanh(z[i]);
      dz[i] += dc[i] * scale[i % w] * (R(1) - t * t);
    }
  }
};
// dtable[s][j] += sum over tokens of dc;  dscale[j] += sum over tokens and s of dc tanh(z): element j of w, tokens in order
template <class R> struct HyperCoefficientsSums {
  const R *z, *dc;
  R *dscale, *dtable;
  std::int64_t total, nw, w;  // total: numbers of all tokens
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    for (std::size_t j = first; j < first + count; ++j)
      for (std::int64_t i = std::int64_t(j); i < total; i += w) {
        dtable[i % nw] += dc[i];
        dscale[j] += dc[i] * math::tanh(z[i]);
      }
  }
};

}  // namespace depthbench
