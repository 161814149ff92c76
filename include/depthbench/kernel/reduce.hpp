// REDUCE: sums over the channels of a row, many at once, one team reduction each.
#pragma once
#include "depthbench/kernel/rows.hpp"

namespace depthbench {

// sum_squares(H): <h_i, h_i> of every row                                              -> (rows, 1)
template <class H> struct SumSquares : Small<typename H::Team::Lanes, H::rows, 1, H::mode> {
  using Team = typename H::Team;
  H& h;
  DB_FN explicit SumSquares(H& x) : SumSquares::Small(x.team.lanes()), h(x) {
    [[maybe_unused]] const auto norm = norm_scope(h.team);
    typename Team::Acc a[H::rows];
    DB_UNROLL for (int i = 0; i < H::rows; ++i) {
      a[i] = Team::acc0();
      DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) {
        const auto x = h.value(i, p);
        Team::fma(a[i], x, x);
      }
    }
    typename H::R c[H::rows];
    Team::hsums(a, c);
    h.team.sum(c, this->v);
  }
  SumSquares(SumSquares&&) = default;
  DB_FN ~SumSquares() {
    if constexpr (H::mode == Mode::Bwd) if (this->live) {
      [[maybe_unused]] const auto norm = norm_scope(h.team);
      DB_UNROLL for (int i = 0; i < H::rows; ++i) {
        const auto c = H::Pack::splat(2 * this->l.get(this->g, i));
        DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) h.set_grad(i, p, h.grad(i, p) + c * h.value(i, p));
      }
      h.touched();
    }
  }
};
template <RowsNode H> DB_FN auto sum_squares(H& h) { return SumSquares<H>(h); }

// moments(H, W): <h_i, w_k> for K shared vectors and, in the last column, <h_i, h_i>      -> (rows, K + 1)
template <class H, class W> struct Moments : Small<typename H::Team::Lanes, H::rows, W::count + 1, H::mode> {
  using Team = typename H::Team;
  using Pack = typename H::Pack;
  static constexpr int N = H::rows, K = W::count, C = K + 1;
  static constexpr int pair = N % 2 == 0 && C <= 12 ? 2 : 1;  // rows at a time: 2 * C accumulators fit the registers
  H& h;
  W& w;
  DB_FN Moments(H& x, W& y) : Moments::Small(x.team.lanes()), h(x), w(y) {
    typename Team::Acc all[N * C];
    DB_UNROLL for (int i = 0; i < N; i += pair) {
      typename Team::Acc a[pair][C];
      DB_UNROLL for (int r = 0; r < pair; ++r) DB_UNROLL for (int k = 0; k < C; ++k) a[r][k] = Team::acc0();
      DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) {
        Pack x2[pair];
        DB_UNROLL for (int r = 0; r < pair; ++r) {
          [[maybe_unused]] const auto norm = norm_scope(h.team);
          x2[r] = h.value(i + r, p);
          Team::fma(a[r][K], x2[r], x2[r]);
        }
        DB_UNROLL for (int k = 0; k < K; ++k) {
          const Pack wk = w.at(k, p);
          DB_UNROLL for (int r = 0; r < pair; ++r) Team::fma(a[r][k], x2[r], wk);
        }
      }
      DB_UNROLL for (int r = 0; r < pair; ++r) DB_UNROLL for (int k = 0; k < C; ++k) all[(i + r) * C + k] = a[r][k];
    }
    typename H::R c[N * C];
    Team::hsums(all, c);
    h.team.sum(c, this->v);
  }
  Moments(Moments&&) = default;
  DB_FN ~Moments() {
    if constexpr (H::mode == Mode::Bwd) if (this->live) {
      Pack c[N][C];
      DB_UNROLL for (int i = 0; i < N; ++i) DB_UNROLL for (int k = 0; k < C; ++k)
        c[i][k] = Pack::splat((k == K ? 2 : 1) * this->l.get(this->g, i * C + k));
      DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) {
        Pack x[N], s[N];
        DB_UNROLL for (int i = 0; i < N; ++i) { x[i] = h.value(i, p); s[i] = h.grad(i, p) + c[i][K] * x[i]; }
        DB_UNROLL for (int k = 0; k < K; ++k) {
          const Pack wk = w.at(k, p);
          Pack gw = w.g[k][p];
          DB_UNROLL for (int i = 0; i < N; ++i) { s[i] = s[i] + c[i][k] * wk; gw = gw + c[i][k] * x[i]; }
          w.g[k][p] = gw;
        }
        DB_UNROLL for (int i = 0; i < N; ++i) h.set_grad(i, p, s[i]);
      }
      h.touched();
    }
  }
};
template <RowsNode H, class W> DB_FN auto moments(H& h, W& w) { return Moments<H, W>(h, w); }

}  // namespace depthbench
