// Dynamic Hyper-Connections with n streams (Zhu et al. 2024, arXiv 2409.19606, eq. 10 to 14), as row programs.
//   x (n, d) streams    w (n + 2, d) projections: n + 1 for the map, the last for the write vector
//   c (n, n + 2) coefficients of a token:  column 0 read, columns 1..n stream maps, column n + 1 write
//   c = S + s * tanh(x_s / sqrt(mean x_s^2 + stream_eps) . w);   S static table, s scales by column
#pragma once
#include "depthbench/kernel/program.hpp"

namespace depthbench {

// The coefficients of the streams x, the sublayer's input u = rms_norm(sum_s c[s][0] x_s; g).
template <int n> struct HyperRead {
  using params = Leaves<Channels<n + 2>, Param<1, n + 2>, Param<n, n + 2>, Channels<1>>;  // w, s, S, g
  using tokens = Leaves<Rows<n>, OutRows<1>, OutToken<n, n + 2>>;                         // x -> u, c
  double stream_eps, norm_eps;
  template <class W, class Sc, class St, class G, class X, class U, class C>
  DB_FN void operator()(auto&, W& w, Sc& s, St& S, G& g, X& x, U& u, C& c) const {
    auto m = moments(x, w);                                                      // (n, n + 3)
    auto r = rsqrt(column<n + 2>(m) / x.dim() + stream_eps);                     // (n, 1)    1 / rms of every stream
    auto a = S + s * tanh(r * columns<0, n + 2>(m));                             // (n, n + 2)
    auto h = rows(mix(transpose(column<0>(a)), x));                              // (1, d)
    auto v = scaled(rsqrt(sum_squares(h) / h.dim() + norm_eps), h, g);           // (1, d)
    u = v;
    c = a;
  }
};

// x'_t = sum_s c[s][t + 1] x_s + c[t][n + 1] y
template <int n> struct HyperWrite {
  using params = Leaves<>;
  using tokens = Leaves<Rows<n>, Token<n, n + 2>, Rows<1>, OutRows<n>>;  // x, c, y -> x'
  DB_FN void operator()(auto&, auto& x, auto& c, auto& y, auto& x_next) const {
    x_next = mix(transpose(columns<1, n>(c)), x) + mix(column<n + 1>(c), y);
  }
};

// The write of one sublayer and the read of the next: the streams are read once and written once.
template <int n> struct HyperAdvance {
  using params = typename HyperRead<n>::params;                                                       // w, s, S, g
  using tokens = Leaves<Rows<n>, Token<n, n + 2>, Rows<1>, OutRows<n>, OutRows<1>, OutToken<n, n + 2>>;  // x, c, y -> x', u, c'
  double stream_eps, norm_eps;
  template <class W, class Sc, class St, class G, class X, class C, class Y, class XN, class U, class CN>
  DB_FN void operator()(auto& team, W& w, Sc& s, St& S, G& g, X& x, C& c, Y& y, XN& x_next, U& u, CN& c_next) const {
    auto z = rows(mix(transpose(columns<1, n>(c)), x) + mix(column<n + 1>(c), y));  // (n, d)
    x_next = z;
    HyperRead<n>{stream_eps, norm_eps}(team, w, s, S, g, z, u, c_next);
  }
};

// The six parameters of a connection, in files channel-major, and the three arrays the programs read.
//   static_alpha (n, n + 1), dynamic_alpha_proj (d, n + 1), dynamic_alpha_scale (), static_beta (n),
//   dynamic_beta_proj (d), dynamic_beta_scale ()   <->   w (n + 2, d), scale (n + 2), table (n, n + 2)
// Each body takes one channel; the first also takes what belongs to no channel.
template <class R> struct HyperPack {
  int n, d;
  const R *alpha, *alpha_proj, *alpha_scale, *beta, *beta_proj, *beta_scale;
  R *w, *scale, *table;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    const int m = n + 1;
    for (std::size_t c = first; c < first + count; ++c) {
      for (int j = 0; j < m; ++j) w[std::size_t(j) * d + c] = alpha_proj[c * m + j];
      w[std::size_t(m) * d + c] = beta_proj[c];
    }
    if (first > 0) return;
    for (int j = 0; j < m; ++j) scale[j] = *alpha_scale;
    scale[m] = *beta_scale;
    for (int s = 0; s < n; ++s) {
      for (int j = 0; j < m; ++j) table[s * (n + 2) + j] = alpha[s * m + j];
      table[s * (n + 2) + m] = beta[s];
    }
  }
};
template <class R> struct HyperUnpackAdd {
  int n, d;
  const R *dw, *dscale, *dtable;
  R *alpha, *alpha_proj, *alpha_scale, *beta, *beta_proj, *beta_scale;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    const int m = n + 1;
    for (std::size_t c = first; c < first + count; ++c) {
      for (int j = 0; j < m; ++j) alpha_proj[c * m + j] += dw[std::size_t(j) * d + c];
      beta_proj[c] += dw[std::size_t(m) * d + c];
    }
    if (first > 0) return;
    for (int j = 0; j < m; ++j) *alpha_scale += dscale[j];
    *beta_scale += dscale[m];
    for (int s = 0; s < n; ++s) {
      for (int j = 0; j < m; ++j) alpha[s * m + j] += dtable[s * (n + 2) + j];
      beta[s] += dtable[s * (n + 2) + m];
    }
  }
};

}  // namespace depthbench
