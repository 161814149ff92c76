// Dynamic Hyper-Connections with n streams (Zhu et al. 2024, arXiv 2409.19606, eq. 10 to 14), as row programs.
//   x (n, d) streams    w (n + 2, d) projections: n + 1 for the map, the last for the write vector
//   c (n, n + 2) coefficients of a token:  column 0 read, columns 1..n stream maps, column n + 1 write
//   c = S + s * tanh(x_s / sqrt(mean x_s^2 + stream_eps) . w);   S static table, s scales by column
#pragma once
#include <array>

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
template <class R> struct HyperPacking {
  int n, d;
  void pack(const std::array<const R*, 6>& p, R* w, R* scale, R* table) const {
    const int m = n + 1;
    for (int c = 0; c < d; ++c) for (int j = 0; j < m; ++j) w[j * d + c] = p[1][c * m + j];
    for (int c = 0; c < d; ++c) w[m * d + c] = p[4][c];
    for (int j = 0; j < m; ++j) scale[j] = *p[2];
    scale[m] = *p[5];
    for (int s = 0; s < n; ++s) {
      for (int j = 0; j < m; ++j) table[s * (n + 2) + j] = p[0][s * m + j];
      table[s * (n + 2) + m] = p[3][s];
    }
  }
  void unpack_add(const R* dw, const R* dscale, const R* dtable, const std::array<R*, 6>& g) const {
    const int m = n + 1;
    for (int c = 0; c < d; ++c) for (int j = 0; j < m; ++j) g[1][c * m + j] += dw[j * d + c];
    for (int c = 0; c < d; ++c) g[4][c] += dw[m * d + c];
    for (int j = 0; j < m; ++j) *g[2] += dscale[j];
    *g[5] += dscale[m];
    for (int s = 0; s < n; ++s) {
      for (int j = 0; j < m; ++j) g[0][s * m + j] += dtable[s * (n + 2) + j];
      g[3][s] += dtable[s * (n + 2) + m];
    }
  }
};

}  // namespace depthbench
