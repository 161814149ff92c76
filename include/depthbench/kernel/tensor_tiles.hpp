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
  // The backward passes have two factors. Beside sums of this many channels only one has room in registers: the other gets a tile.
  static constexpr bool wide = K > 6;
  static constexpr int wide_reals = shared_reals + (wide ? tile : 0);

  // Of 16 rows of a warp: a factor with all its channels, and sums over other rows, all channels again.
  //   sums[c][e][i]   row g + 8 (i / 2), word 8 c + 2 t + i % 2, its half e
  struct Rows {
    Word a[K][4];
    DB_FN void step(int k, Word (&x)[4]) const { DB_UNROLL for (int i = 0; i < 4; ++i) x[i] = a[k][i]; }
  };
  struct Sums { float x[K][2][4] = {}; };
  template <class Shared> struct RowsInTile {  // a factor that stays in shared memory
    Shared tile;
    int at;
    DB_FN void step(int k, Word (&x)[4]) const {
      DB_UNROLL for (int i = 0; i < 4; ++i) x[i] = tile[at + 8 * k + i % 2 * 8 * stride + i / 2 * 4];
    }
  };

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
    constexpr int ahead = K % 2 == 0 ? 2 : K;  // of a thread's K quadruples of words, those on their way at once, in registers
    const int half = s.head_dim / 2;
    const bool wide = half % 4 == 0 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
    for (int start = prim.rank(); start < rows * words / 4; start += ahead * prim.size()) {
      float a[ahead][4], b[ahead][4], co[ahead][4], si[ahead][4];
      DB_UNROLL for (int n = 0; n < ahead; ++n) {
        const int i = start + n * prim.size(), t = first + i / (words / 4), j = i % (words / 4) * 4, count = t < s.seq ? half : 0;
        four(x + t * ld, j, count, wide, a[n]);
        four(x + t * ld + half, j, count, wide, b[n]);
        if constexpr (rotated) {
          four(cos + std::int64_t(t) * half, j, count, wide, co[n]);
          four(sin + std::int64_t(t) * half, j, count, wide, si[n]);
        }
      }
      DB_UNROLL for (int n = 0; n < ahead; ++n) {
        const int i = start + n * prim.size(), at = i / (words / 4) * stride + i % (words / 4) * 4;
        Raw<Word, 4> pairs;
        DB_UNROLL for (int m = 0; m < 4; ++m) {
          const float low = a[n][m], high = b[n][m];
          if constexpr (rotated)
            pairs.x[m] = bf16_pair((low * co[n][m] - high * si[n][m]) * c, (high * co[n][m] + low * si[n][m]) * c);
          else pairs.x[m] = bf16_pair(low * c, high * c);
        }
        if constexpr (std::is_pointer_v<Shared>) *reinterpret_cast<Raw<Word, 4>*>(to + at) = pairs;
        else for (int m = 0; m < 4; ++m) to[at + m] = pairs.x[m];
      }
    }
  }
  template <class Shared> static DB_FN void own(const Shared& from, const Place& p, Rows& x) {
    DB_UNROLL for (int k = 0; k < K; ++k) RowsInTile<Shared>{from, p.row(0) * stride + p.t}.step(k, x.a[k]);
  }
  template <class Shared> static DB_FN auto second_factor(const Shared& from, const Place& p) {
    if constexpr (wide) {
      return RowsInTile<Shared>{from, p.row(0) * stride + p.t};
    } else {
      Rows x;
      own(from, p, x);
      return x;
    }
  }
  // f(c, i, j): of this thread's sums [c][0][i] and [c][1][i] of row r, which are channels j and j + h / 2 that exist.
  template <class F> DB_FN void for_sums(const Place& p, int r, F f) const {
    DB_UNROLL for (int c = 0; c < K; ++c) DB_UNROLL for (int i = 0; i < 2; ++i) {
      const int j = 8 * c + 2 * p.t + i;
      if (j < s.head_dim / 2) f(c, 2 * r + i, j);
    }
  }
  // f(x, y, j): this thread's numbers of row r of a factor, channels j and j + h / 2 that exist.
  template <class Own, class F> DB_FN void for_rows(const Own& own, const Place& p, int r, F f) const {
    DB_UNROLL for (int k = 0; k < K; ++k) {
      Word a[4];
      own.step(k, a);
      DB_UNROLL for (int i = 0; i < 2; ++i) {
        const int j = 8 * k + 4 * i + p.t;
        if (j < s.head_dim / 2) f(low_of(a[2 * i + r]), high_of(a[2 * i + r]), j);
      }
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
  // c: the dot products of 16 own rows with rows row .. row + 8 N - 1 of a tile.
  //   c[n][i]   own row g + 8 (i / 2), the tile's row + 8 n + 2 t + i % 2
  template <int N, class Prim, class Own, class Shared>
  static DB_FN void dots(const Prim& prim, const Own& own, const Shared& with, const Place& p, int row, float (&c)[N][4]) {
    DB_UNROLL for (int n = 0; n < N; ++n) DB_UNROLL for (int i = 0; i < 4; ++i) c[n][i] = 0;
    const int at = (row + p.g) * stride + p.t;
    DB_UNROLL for (int k = 0; k < K; ++k) {
      Word a[4];
      own.step(k, a);
      DB_UNROLL for (int n = 0; n < N; ++n) {  // sums that do not wait for each other, side by side
        const Word b[2] = {with[at + 8 * (n * stride + k)], with[at + 8 * (n * stride + k) + 4]};
        prim.mma(c[n], a, b);
      }
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
  template <class Prim, class Own>
  DB_FN float row_dot(const Prim& prim, const Own& own, const Place& p, int r, const float* x, bool live) const {
    float sum = 0;
    if (live) for_rows(own, p, r, [&](float low, float high, int j) { sum += low * x[j] + high * x[j + s.head_dim / 2]; });
    return row_sum(prim, sum);
  }
};

}  // namespace depthbench
