// Small matrix products of packed tiles, for attention and as the library-free fallback.
//   C (m, n) (+)= A (m, k) . B (k, n)
// A is read one number at a time and spread over a register; B and C are read in whole registers, so B's rows are
// `width` numbers apart, a multiple of the register, and C's too.
#pragma once
#include <cstdint>
#include <vector>

#include "depthbench/kernel/pack.hpp"

namespace depthbench {

enum class Store { Overwrite, Add };

// A's element (i, p) is a[i * row + p * col].
template <class R> struct TileA {
  const R* a;
  std::int64_t row, col;
};

namespace detail {
// MR rows by NV registers of C, held in registers over the whole of k.
template <int MR, int NV, Store St, class R>
DB_HOST_FN void tile_block(int k, TileA<R> a, const R* b, std::int64_t ldb, R* c, std::int64_t ldc) {
  using P = cpu_pack<R>;
  P acc[MR][NV];
  DB_UNROLL for (int i = 0; i < MR; ++i) DB_UNROLL for (int v = 0; v < NV; ++v)
    acc[i][v] = St == Store::Add ? load_pack<P>(c + i * ldc + v * P::width, P::width) : P::splat(0);
  for (int p = 0; p < k; ++p) {
    P bv[NV];
    DB_UNROLL for (int v = 0; v < NV; ++v) bv[v] = load_pack<P>(b + p * ldb + v * P::width, P::width);
    DB_UNROLL for (int i = 0; i < MR; ++i) {
      const P x = P::splat(a.a[i * a.row + p * a.col]);
      DB_UNROLL for (int v = 0; v < NV; ++v) acc[i][v] = acc[i][v] + x * bv[v];
    }
  }
  DB_UNROLL for (int i = 0; i < MR; ++i) DB_UNROLL for (int v = 0; v < NV; ++v)
    store_pack(c + i * ldc + v * P::width, acc[i][v], P::width);
}
template <int NV, Store St, class R>
inline void tile_columns(int m, int k, TileA<R> a, const R* b, std::int64_t ldb, R* c, std::int64_t ldc) {
  constexpr int registers = cpu_vector_bytes == 64 ? 32 : 16, fit = (registers - NV - 1) / NV;
  constexpr int MR = fit >= 16 ? 16 : fit >= 12 ? 12 : fit >= 8 ? 8 : fit >= 6 ? 6 : 4;  // all but 4 divide attention's 48
  int i = 0;
  for (; i + MR <= m; i += MR) tile_block<MR, NV, St>(k, TileA<R>{a.a + i * a.row, a.row, a.col}, b, ldb, c + i * ldc, ldc);
  for (; i + 4 <= m; i += 4) tile_block<4, NV, St>(k, TileA<R>{a.a + i * a.row, a.row, a.col}, b, ldb, c + i * ldc, ldc);
  for (; i < m; ++i) tile_block<1, NV, St>(k, TileA<R>{a.a + i * a.row, a.row, a.col}, b, ldb, c + i * ldc, ldc);
}
}  // namespace detail

// n is a multiple of the register width; ldb, ldc >= n.
template <Store St, class R>
inline void tile_gemm(int m, int n, int k, TileA<R> a, const R* b, std::int64_t ldb, R* c, std::int64_t ldc) {
  constexpr int W = cpu_pack<R>::width;
  constexpr int widest = cpu_vector_bytes == 64 ? 4 : 2;
  int j = 0;
  for (; j + widest * W <= n; j += widest * W) detail::tile_columns<widest, St>(m, k, a, b + j, ldb, c + j, ldc);
  const int rest = (n - j) / W;
  if (widest > 3 && rest == 3) detail::tile_columns<3, St>(m, k, a, b + j, ldb, c + j, ldc);
  if (rest == 2) detail::tile_columns<2, St>(m, k, a, b + j, ldb, c + j, ldc);
  if (rest == 1) detail::tile_columns<1, St>(m, k, a, b + j, ldb, c + j, ldc);
}

// Any shape, any transposes, by packing strips of B and of C: the matrix product without a library.
template <class R>
inline void tile_gemm_blocked(bool ta, bool tb, std::int64_t m, std::int64_t n, std::int64_t k, const R* a, std::int64_t lda,
                              const R* b, std::int64_t ldb, R beta, R* c, std::int64_t ldc) {
  constexpr int W = cpu_pack<R>::width, NB = 4 * W, KB = 256, MB = 64;
  std::vector<R> bp(std::size_t(KB) * NB), cp(std::size_t(MB) * NB);
  for (std::int64_t j = 0; j < n; j += NB) {
    const int nb = int(n - j < NB ? n - j : NB), np = (nb + W - 1) / W * W;
    for (std::int64_t p = 0; p < k || p == 0; p += KB) {
      const int kb = int(k - p < KB ? k - p : KB);
      for (int q = 0; q < kb; ++q) for (int r = 0; r < np; ++r)
        bp[std::size_t(q) * NB + r] = r < nb ? (tb ? b[(j + r) * ldb + p + q] : b[(p + q) * ldb + j + r]) : R(0);
      const R scale = p == 0 ? beta : R(1);
      for (std::int64_t i = 0; i < m; i += MB) {
        const int mb = int(m - i < MB ? m - i : MB);
        const TileA<R> at{ta ? a + p * lda + i : a + i * lda + p, ta ? 1 : lda, ta ? lda : 1};
        tile_gemm<Store::Overwrite>(mb, np, kb, at, bp.data(), NB, cp.data(), NB);
        for (int q = 0; q < mb; ++q) for (int r = 0; r < nb; ++r) {
          R& out = c[(i + q) * ldc + j + r];
          out = cp[std::size_t(q) * NB + r] + (scale == R(0) ? R(0) : scale * out);
        }
      }
    }
  }
}

}  // namespace depthbench
