// Depth slots on the CPU: for one query, a short row of each of many arrays.
//   slot_dots     out[s] = <x, row_s>             a pack of slots at a time: as many streams of memory, one reduction
//   slot_mix      y += sum_s c_s row_s            y in registers
//   slot_spread   row_s += c_s x
// Row: row(s, i) -> where the row of slot s begins that is i tokens further. Each asks for the next token's rows while it works:
// these are more streams than a processor's prefetcher follows.
#pragma once
#include <cstdint>

#include "depthbench/kernel/pack.hpp"

namespace depthbench::detail {

template <class R> void fetch_row(const R* row, int h) {
  constexpr int line = 64 / sizeof(R);
  for (int j = 0; j < h; j += line) __builtin_prefetch(row + j);
}

template <class R, class Row> void slot_dots(const R* x, int h, int count, const Row& row, R* out) {
  using P = cpu_pack<R>;
  constexpr int W = P::width;
  for (int first = 0; first < count; first += W) {
    const R* rows[W];
    P acc[W];
    for (int i = 0; i < W; ++i) {
      const int s = first + i < count ? first + i : count - 1;
      rows[i] = row(s, 0);
      fetch_row(row(s, 1), h);
      acc[i] = P::splat(0);
    }
    for (int j = 0; j < h; j += W) {
      const P a = load_pack<P>(x + j, h - j);
      DB_UNROLL for (int i = 0; i < W; ++i) acc[i] = acc[i] + a * load_pack<P>(rows[i] + j, h - j);
    }
    R sums[W];
    lane_sums(acc, sums);
    for (int i = 0; i < W && first + i < count; ++i) out[first + i] = sums[i];
  }
}

template <class R, class Row> void slot_mix(const R* c, int h, int count, const Row& row, R* y) {
  using P = cpu_pack<R>;
  for (int j = 0; j < h; j += 2 * P::width) {  // two packs: the addresses are found once
    const int left = h - j, right = left - P::width;
    P a = load_pack<P>(y + j, left), b = right > 0 ? load_pack<P>(y + j + P::width, right) : P::splat(0);
    for (int s = 0; s < count; ++s) {
      const R* x = row(s, 0) + j;
      fetch_row(row(s, 1) + j, left < 2 * P::width ? left : 2 * P::width);
      const P w = P::splat(c[s]);
      a = a + w * load_pack<P>(x, left);
      if (right > 0) b = b + w * load_pack<P>(x + P::width, right);
    }
    store_pack(y + j, a, left);
    if (right > 0) store_pack(y + j + P::width, b, right);
  }
}

template <class R, class Row> void slot_spread(const R* c, const R* x, int h, int count, const Row& row) {
  using P = cpu_pack<R>;
  for (int s = 0; s < count; ++s) {
    R* y = row(s, 0);
    if (!y) continue;
    fetch_row(row(s, 1), h);
    const P w = P::splat(c[s]);
    for (int j = 0; j < h; j += P::width) store_pack(y + j, load_pack<P>(y + j, h - j) + w * load_pack<P>(x + j, h - j), h - j);
  }
}

}  // namespace depthbench::detail
