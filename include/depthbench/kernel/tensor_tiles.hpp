// What attention on tensor cores is made of (tensor_attention.hpp): tiles of 64 rows in shared memory, 16 rows of a warp in
// registers, and two products of them, by one instruction of a warp, Prim's mma (emulated_block.hpp has its layout):
//   c (16, 8) += a (16, 16) b (16, 8)
// Word j of a row holds channels j and j + h / 2, the pair that rotary positions turn: a thread that has one has both. Dot products
// do not mind the order of channels. Rows are 4 words longer than a multiple of 8, so that a warp's loads meet all banks.
#pragma once
#include "depthbench/kernel/attention_shape.hpp"
#include "depthbench/kernel/bf16_pair.hpp"
#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// K: 16 K channels, zero from h on. Prim: as of a SimtTeam (simt_team.hpp), and mma.
template <int K> struct TensorAttention : AttentionInput<float> {
  using Word = std::uint32_t;
  static constexpr int warp = 32, threads = 128, rows = 64, chunks = rows / 16;
  static constexpr int words = 8 * K, stride = words + 4, tile = rows * stride;
  static constexpr int shared_reals = 2 * tile + 2 * rows;  // two tiles; two numbers a row

  // Fragments of 16 rows: all channels of the factor a; sums over other rows, all channels again.
  //   acc[c][e][i]   row g + 8 (i / 2), word 8 c + 2 t + i % 2, its half e
  struct Rows { Word a[K][4]; };
  struct Sums { float x[K][2][4] = {}; };

  DB_FN int tiles() const { return (s.seq + rows - 1) / rows; }

  // This thread's place in its warp, and the warp's rows.
  struct Place {
    int g, t, first_row;  // of the tile
    template <class Prim> explicit DB_FN Place(const Prim& prim)
        : g(prim.rank() % warp / 4), t(prim.rank() % 4), first_row(prim.rank() / warp * 16) { static_assert(Prim::warp == warp); }
    DB_FN int row(int r) const { return first_row + g + 8 * r; }  // r: 0 or 1
  };

  // ---- between memory, the tiles and the threads
  // Numbers j .. j + 3 of n at p; zero beyond. wide: they begin at a multiple of 16 bytes, and n is one of 4.
  static DB_FN void four(const float* p, int j, int n, bool wide, float (&x)[4]) {
    if (wide) {
      Raw<float, 4> raw{};
      if (j < n) raw = *reinterpret_cast<const Raw<float, 4>*>(p + j);
      DB_UNROLL for (int i = 0; i < 4; ++i) x[i] = raw.x[i];
    } else {
      DB_UNROLL for (int i = 0; i < 4; ++i) x[i] = j + i < n ? p[j + i] : 0.f;
    }
  }
  // Rows first .. first + 63 of x (row 0 at x, rows ld apart), rotated or not, times c; zero beyond T and h.
  template <bool rotated, class Prim, class Shared>
  DB_FN void load_tile(const Prim& prim, const Shared& to, const float* x, std::int64_t ld, int first, float c) const {
    const int half = s.head_dim / 2;
    const bool wide = half % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
    for (int i = prim.rank(); i < rows * words / 4; i += prim.size()) {
      const int r = i / (words / 4), j = i % (words / 4) * 4, t = first + r;
      float a[4], b[4];
      const int count = t < s.seq ? half : 0;
      four(x + t * ld, j, count, wide, a);
      four(x + t * ld + half, j, count, wide, b);
      if constexpr (rotated) {
        float co[4], si[4];
        four(cos + std::int64_t(t) * half, j, count, wide, co);
        four(sin + std::int64_t(t) * half, j, count, wide, si);
        DB_UNROLL for (int m = 0; m < 4; ++m) {
          const float turned = a[m] * co[m] - b[m] * si[m];
          b[m] = (b[m] * co[m] + a[m] * si[m]) * c;
          a[m] = turned * c;
        }
      }
      Raw<Word, 4> four_words;
      DB_UNROLL for (int m = 0; m < 4; ++m) four_words.x[m] = bf16_pair(a[m], b[m]);
      if constexpr (std::is_pointer_v<Shared>) *reinterpret_cast<Raw<Word, 4>*>(to + r * stride + j) = four_words;
      else for (int m = 0; m < 4; ++m) to[r * stride + j + m] = four_words.x[m];
    }
  }
  template <class Shared> static DB_FN void own(const Shared& from, const Place& p, Rows& x) {
    const int at = p.row(0) * stride + p.t;
    DB_UNROLL for (int k = 0; k < K; ++k)
      DB_UNROLL for (int i = 0; i < 4; ++i) x.a[k][i] = from[at + 8 * k + i % 2 * 8 * stride + i / 2 * 4];
  }
  // f(c, i, j): of this thread's sums [c][0][i] and [c][1][i] of row r, which are channels j and j + h / 2 that exist.
  template <class F> DB_FN void for_sums(const Place& p, int r, F f) const {
    DB_UNROLL for (int c = 0; c < K; ++c) DB_UNROLL for (int i = 0; i < 2; ++i) {
      const int j = 8 * c + 2 * p.t + i;
      if (j < s.head_dim / 2) f(c, 2 * r + i, j);
    }
  }
  // f(x, y, j): this thread's numbers of row r of a factor, channels j and j + h / 2 that exist.
  template <class F> DB_FN void for_rows(const Rows& x, const Place& p, int r, F f) const {
    DB_UNROLL for (int k = 0; k < K; ++k) DB_UNROLL for (int i = 0; i < 2; ++i) {
      const int j = 8 * k + 4 * i + p.t;
      if (j < s.head_dim / 2) f(low_of(x.a[k][2 * i + r]), high_of(x.a[k][2 * i + r]), j);
    }
  }
  // y (+)= c * row r of the sums, turned back or not
  template <bool rotated> DB_FN void store(const Sums& sums, const Place& p, int r, float* y, int t, float c, bool add) const {
    const int half = s.head_dim / 2;
    for_sums(p, r, [&](int k, int i, int j) {
      float a = sums.x[k][0][i] * c, b = sums.x[k][1][i] * c;
      if constexpr (rotated) {
        const float co = cos[std::int64_t(t) * half + j], si = sin[std::int64_t(t) * half + j], turned = a * co + b * si;
        b = b * co - a * si;
        a = turned;
      }
      y[j] = a + (add ? y[j] : 0.f);
      y[j + half] = b + (add ? y[j + half] : 0.f);
    });
  }

  // ---- products
  // c: the dot products of 16 own rows with rows row .. row + 7 of a tile.   c[i]: own row g + 8 (i / 2), row 2 t + i % 2
  template <class Prim, class Shared>
  static DB_FN void dots(const Prim& prim, const Rows& a, const Shared& with, const Place& p, int row, float (&c)[4]) {
    DB_UNROLL for (int i = 0; i < 4; ++i) c[i] = 0;
    const int at = (row + p.g) * stride + p.t;
    DB_UNROLL for (int k = 0; k < K; ++k) {
      const Word b[2] = {with[at + 8 * k], with[at + 8 * k + 4]};
      prim.mma(c, a.a[k], b);
    }
  }
  // The layout of 16 rows' dots with 16 rows is that of a factor.
  static DB_FN void round(const float (&low)[4], const float (&high)[4], Word (&a)[4]) {
    a[0] = bf16_pair(low[0], low[1]);
    a[1] = bf16_pair(low[2], low[3]);
    a[2] = bf16_pair(high[0], high[1]);
    a[3] = bf16_pair(high[2], high[3]);
  }
  // sums += a (16, 16) times rows row .. row + 15 of a tile. Two words above each other are a pair of columns: both halves are used.
  template <class Prim, class Shared>
  static DB_FN void mix(const Prim& prim, const Word (&a)[4], const Shared& of, const Place& p, int row, Sums& sums) {
    const int at = (row + 2 * p.t) * stride + p.g;
    DB_UNROLL for (int c = 0; c < K; ++c) {
      const Word w[4] = {of[at + 8 * c], of[at + 8 * c + stride], of[at + 8 * c + 8 * stride], of[at + 8 * c + 9 * stride]};
      const Word low[2] = {lows(w[0], w[1]), lows(w[2], w[3])}, high[2] = {highs(w[0], w[1]), highs(w[2], w[3])};
      prim.mma(sums.x[c][0], a, low);
      prim.mma(sums.x[c][1], a, high);
    }
  }
  // Over the four threads of a row. All threads of a warp take part.
  template <class Prim> static DB_FN float row_sum(const Prim& prim, float x) {
    x += prim.shfl_xor(x, 1);
    return x + prim.shfl_xor(x, 2);
  }
  template <class Prim> static DB_FN float row_max(const Prim& prim, float x) {
    x = math::max(x, prim.shfl_xor(x, 1));
    return math::max(x, prim.shfl_xor(x, 2));
  }
  // <row r of a factor, a row in memory>
  template <class Prim> DB_FN float row_dot(const Prim& prim, const Rows& a, const Place& p, int r, const float* x, bool live) const {
    float sum = 0;
    if (live) for_rows(a, p, r, [&](float low, float high, int j) { sum += low * x[j] + high * x[j + s.head_dim / 2]; });
    return row_sum(prim, sum);
  }
};

}  // namespace depthbench
