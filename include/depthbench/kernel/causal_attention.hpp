// Causal attention with rotary positions and grouped heads, on the CPU. (On blocks of threads: block_attention.hpp.)
//   out[t] = sum over t' <= t of softmax_t'(q_t . k_t' / sqrt(h)) v_t'       q, k rotated; query head a uses KV head a / (H / Hkv)
// With depth slots (MoDA), the same softmax also runs over a few keys of the token itself, which are not rotated:
//   logits q_t . K_{t,s} / sqrt(h) beside q_t . k_t' / sqrt(h);   out[t] += sum over s of p_s V_{t,s}
// Memory is O(T) per head: 48 rows of scores at a time, recomputed in the backward pass from the saved log-sum-exp
// (Dao et al. 2022, arXiv 2205.14135). Blocks of scores above the diagonal are skipped.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/attention_shape.hpp"
#include "depthbench/kernel/pack_math.hpp"
#include "depthbench/kernel/rope.hpp"
#include "depthbench/kernel/slot_rows.hpp"
#include "depthbench/kernel/tile_gemm.hpp"

namespace depthbench {

namespace detail {

template <class R> struct HeadTiles {  // sizes of the packed tiles of one head
  static constexpr int W = cpu_pack<R>::width;
  static constexpr int rows = 48;       // queries at a time
  static constexpr int max_keys = 512;  // keys at a time in the backward pass
  static constexpr int up(int n) { return (n + W - 1) / W * W; }
};

// x (T, ld): one head of it, rotated or not, times c, into padded rows (T, hp).
template <bool rotated, class R>
void pack_rows(const R* x, std::int64_t ld, int T, int h, const RopeTable<R>& rope, R c, R* rows, int hp) {
  for (int t = 0; t < T; ++t) {
    R* y = rows + std::size_t(t) * hp;
    if constexpr (rotated) rotate<Turn::forward>(x + t * ld, y, h, rope.cos_at(t), rope.sin_at(t), c);
    else for (int j = 0; j < h; ++j) y[j] = x[t * ld + j];
    for (int j = h; j < hp; ++j) y[j] = R(0);
  }
}
template <class R> void transpose_rows(const R* rows, int hp, int T, int h, R* columns, int tp) {  // (T, hp) -> (h, tp)
  constexpr int B = 16;
  for (int t0 = 0; t0 < T; t0 += B) for (int j = 0; j < h; ++j) {
    const int last = t0 + B < T ? t0 + B : T;
    for (int t = t0; t < last; ++t) columns[std::size_t(j) * tp + t] = rows[std::size_t(t) * hp + j];
  }
  for (int j = 0; j < h; ++j) for (int t = T; t < tp; ++t) columns[std::size_t(j) * tp + t] = R(0);
}

// The softmax of one row of n scores: probabilities not yet divided by their sum. Returns max and sum.
template <class R> std::pair<R, R> softmax_row(R* s, int n) {
  using P = cpu_pack<R>;
  constexpr int W = P::width, U = 4;  // four chains: a maximum or a sum takes 4 cycles
  P m[U], sum[U];
  for (int u = 0; u < U; ++u) {
    m[u] = load_pack<P>(s, W);
    sum[u] = P::splat(0);
  }
  int j = 0;
  for (; j + U * W <= n; j += U * W)
    DB_UNROLL for (int u = 0; u < U; ++u) m[u] = math::max(m[u], load_pack<P>(s + j + u * W, W));
  for (; j < n; j += W) m[0] = math::max(m[0], load_pack<P>(s + j, W));
  const P top4 = math::max(math::max(m[0], m[1]), math::max(m[2], m[3]));
  R top = top4.get(0);
  for (int i = 1; i < W; ++i) top = std::max(top, top4.get(i));
  const P t = P::splat(top);
  const auto step = [&](int at, P& total) {
    const P e = math::exp(load_pack<P>(s + at, W) - t);
    store_pack(s + at, e, W);
    total = total + e;
  };
  for (j = 0; j + U * W <= n; j += U * W)
    DB_UNROLL for (int u = 0; u < U; ++u) step(j + u * W, sum[u]);
  for (; j < n; j += W) step(j, sum[0]);
  const P sum4 = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  R total = 0;
  for (int i = 0; i < W; ++i) total += sum4.get(i);
  return {top, total};
}

template <class R> void mask(R* s, int from, int to) {
  for (int j = from; j < to; ++j) s[j] = -std::numeric_limits<R>::infinity();
}

// Depth slots are the residual design's, whatever part of the model the attention is.
template <class Device> void count_slots(Device& device, double flops, double bytes) {
  const auto scope = device.profile().within(Part::residual);
  device.profile().count(Section::attention, flops, bytes);
}

}  // namespace detail

// q (B T, H h)   k, v (B T, Hkv h)   ->   out (B T, H h), lse (B, H, T)
template <class Device, class R> requires(!Device::simt)
void causal_attention_forward(Device& device, const AttentionShape& s, const RopeTable<R>& rope, const R* q, const R* k,
                              const R* v, R* out, R* lse, std::type_identity_t<std::span<const DepthSlot<R>>> slots = {}) {
  using Tiles = detail::HeadTiles<R>;
  const int T = s.seq, h = s.head_dim, hp = Tiles::up(h), tp = Tiles::up(T), extra = int(slots.size()), ep = Tiles::up(extra), row = tp + ep;
  const int pairs = s.batch * s.kv_heads, tiles = (T + Tiles::rows - 1) / Tiles::rows;
  const std::size_t per_pair = std::size_t(h) * tp + 2 * std::size_t(T) * hp;
  const std::size_t scratch = std::size_t(Tiles::rows) * (row + 2 * hp);
  const auto cost = AttentionCost::forward(s, extra, sizeof(R));
  detail::count_slots(device, cost.slot_flops, cost.slot_bytes);
  const auto timing = device.timed(Section::attention, cost.flops, cost.bytes);
  auto& memory = device.memory();
  R* packed = memory.template acquire<R>(per_pair * pairs);
  R* work = memory.template acquire<R>(scratch * device.threads());

  device.pool().run(pairs, [&](int i, int) {
    const int b = i / s.kv_heads, g = i % s.kv_heads;
    const std::size_t at = std::size_t(b) * T * s.kv_width() + std::size_t(g) * h;
    R* kt = packed + per_pair * i;
    R* vp = kt + std::size_t(h) * tp;
    R* kp = vp + std::size_t(T) * hp;
    detail::pack_rows<true>(k + at, s.kv_width(), T, h, rope, R(1), kp, hp);
    detail::transpose_rows(kp, hp, T, h, kt, tp);
    detail::pack_rows<false>(v + at, s.kv_width(), T, h, rope, R(1), vp, hp);
  });
  device.pool().run(s.batch * s.heads * tiles, [&](int i, int worker) {
    const int tile = tiles - 1 - i % tiles, head = i / tiles % s.heads, b = i / tiles / s.heads;  // the longest rows first
    const int first = tile * Tiles::rows, m = std::min(Tiles::rows, T - first), keys = first + m, kp = Tiles::up(keys);
    const R* kt = packed + per_pair * (std::size_t(b) * s.kv_heads + head / s.group());
    const R* vp = kt + std::size_t(h) * tp;
    R* scores = work + scratch * worker;
    R* qr = scores + std::size_t(Tiles::rows) * row;
    R* acc = qr + std::size_t(Tiles::rows) * hp;
    const std::size_t at = (std::size_t(b) * T + first) * s.width() + std::size_t(head) * h;
    const R scale = R(1) / std::sqrt(R(h));
    for (int r = 0; r < m; ++r)
      rotate<Turn::forward>(q + at + std::size_t(r) * s.width(), qr + std::size_t(r) * hp, h, rope.cos_at(first + r), rope.sin_at(first + r), scale);
    tile_gemm<Store::Overwrite>(m, kp, h, TileA<R>{qr, hp, 1}, kt, tp, scores, row);
    R sums[Tiles::rows];
    const std::size_t slot_head = std::size_t(head / s.group()) * h;
    for (int r = 0; r < m; ++r) {
      R* line = scores + std::size_t(r) * row;
      detail::mask(line, first + r + 1, kp);
      const auto key = [&](int e, int later) { return slots[e].k + (std::int64_t(b) * T + first + r + later) * slots[e].k_stride + slot_head; };
      detail::slot_dots(qr + std::size_t(r) * hp, h, extra, key, line + kp);
      detail::mask(line, kp + extra, kp + ep);
      const auto [top, sum] = detail::softmax_row(line, kp + ep);
      sums[r] = sum;
      lse[(std::size_t(b) * s.heads + head) * T + first + r] = top + std::log(sum);
    }
    tile_gemm<Store::Overwrite>(m, hp, keys, TileA<R>{scores, row, 1}, vp, hp, acc, hp);
    for (int r = 0; r < m; ++r) {
      const R c = R(1) / sums[r];
      const auto value = [&](int e, int later) { return slots[e].v + (std::int64_t(b) * T + first + r + later) * slots[e].v_stride + slot_head; };
      detail::slot_mix(scores + std::size_t(r) * row + kp, h, extra, value, acc + std::size_t(r) * hp);
      for (int j = 0; j < h; ++j) out[at + std::size_t(r) * s.width() + j] = acc[std::size_t(r) * hp + j] * c;
    }
  });
  memory.release(work, scratch * device.threads() * sizeof(R));
  memory.release(packed, per_pair * pairs * sizeof(R));
}

// Adds to or overwrites dq, dk, dv as their `add` says; a null gradient is not wanted.
template <class Device, class R> requires(!Device::simt)
void causal_attention_backward(Device& device, const AttentionShape& s, const RopeTable<R>& rope, const R* q, const R* k,
                               const R* v, const R* out, const R* lse, const R* dout, AttentionGradient<R> dq,
                               AttentionGradient<R> dk, AttentionGradient<R> dv, std::type_identity_t<std::span<const DepthSlot<R>>> slots = {}) {
  using Tiles = detail::HeadTiles<R>;
  using P = cpu_pack<R>;
  constexpr int W = P::width;
  const int T = s.seq, h = s.head_dim, hp = Tiles::up(h), tp = Tiles::up(T), extra = int(slots.size());
  const int chunk = std::max({std::min(Tiles::max_keys, tp), hp, Tiles::up((extra + Tiles::rows - 1) / Tiles::rows)});
  const std::size_t rows = std::size_t(T) * hp, columns = std::size_t(h) * tp, tile = std::size_t(Tiles::rows) * chunk;
  const std::size_t scratch = 6 * rows + 2 * columns + 2 * tile + std::size_t(Tiles::rows) * hp;
  const auto cost = AttentionCost::backward(s, int(slots.size()), sizeof(R));
  detail::count_slots(device, cost.slot_flops, cost.slot_bytes);
  const auto timing = device.timed(Section::attention, cost.flops, cost.bytes);
  R* work = device.memory().template acquire<R>(scratch * device.threads());
  const R scale = R(1) / std::sqrt(R(h));

  device.pool().run(s.batch * s.kv_heads, [&](int item, int worker) {
    const int b = item / s.kv_heads, g = item % s.kv_heads;
    R* kr = work + scratch * worker;  // keys, rotated                     (T, hp)
    R *qr = kr + rows, *dor = qr + rows, *dkr = dor + rows, *dvr = dkr + rows, *vr = dvr + rows;
    R* kt = vr + rows;       // (h, tp)
    R* vt = kt + columns;    // (h, tp)
    R* p = vt + columns;     // probabilities, then those of slots, then one rotated row   (48, chunk)
    R* ds = p + tile;        // gradient of the scores                     (48, chunk)
    R* dqr = ds + tile;      // gradient of 48 queries                     (48, hp)
    const std::size_t kv_at = std::size_t(b) * T * s.kv_width() + std::size_t(g) * h;
    detail::pack_rows<true>(k + kv_at, s.kv_width(), T, h, rope, R(1), kr, hp);
    detail::transpose_rows(kr, hp, T, h, kt, tp);
    detail::pack_rows<false>(v + kv_at, s.kv_width(), T, h, rope, R(1), vr, hp);
    detail::transpose_rows(vr, hp, T, h, vt, tp);
    std::fill(dkr, dkr + 2 * rows, R(0));

    for (int head = g * s.group(); head < (g + 1) * s.group(); ++head) {
      const std::size_t at = std::size_t(b) * T * s.width() + std::size_t(head) * h;
      detail::pack_rows<true>(q + at, s.width(), T, h, rope, scale, qr, hp);
      detail::pack_rows<false>(dout + at, s.width(), T, h, rope, R(1), dor, hp);
      const R* log_sum = lse + (std::size_t(b) * s.heads + head) * T;
      for (int first = 0; first < T; first += Tiles::rows) {
        const int m = std::min(Tiles::rows, T - first), keys = first + m;
        R delta[Tiles::rows];  // <dout_t, out_t>
        for (int r = 0; r < m; ++r) {
          const R *x = dor + std::size_t(first + r) * hp, *y = out + at + std::size_t(first + r) * s.width();
          R sum = 0;
          for (int j = 0; j < h; ++j) sum += x[j] * y[j];
          delta[r] = sum;
        }
        std::fill(dqr, dqr + std::size_t(m) * hp, R(0));
        for (int k0 = 0; k0 < keys; k0 += chunk) {
          const int n = std::min(chunk, keys - k0), np = Tiles::up(n);
          tile_gemm<Store::Overwrite>(m, np, h, TileA<R>{qr + std::size_t(first) * hp, hp, 1}, kt + k0, tp, p, chunk);
          tile_gemm<Store::Overwrite>(m, np, h, TileA<R>{dor + std::size_t(first) * hp, hp, 1}, vt + k0, tp, ds, chunk);
          for (int r = 0; r < m; ++r) {
            R *pr = p + std::size_t(r) * chunk, *dsr = ds + std::size_t(r) * chunk;
            const P l = P::splat(log_sum[first + r]), d = P::splat(delta[r]);
            const int valid = std::clamp(first + r + 1 - k0, 0, n);
            detail::mask(pr, valid, np);
            for (int j = 0; j < np; j += W) {
              const P e = math::exp(load_pack<P>(pr + j, W) - l);
              store_pack(pr + j, e, W);
              store_pack(dsr + j, e * (load_pack<P>(dsr + j, W) - d), W);
            }
          }
          tile_gemm<Store::Add>(n, hp, m, TileA<R>{p, 1, chunk}, dor + std::size_t(first) * hp, hp, dvr + std::size_t(k0) * hp, hp);
          tile_gemm<Store::Add>(n, hp, m, TileA<R>{ds, 1, chunk}, qr + std::size_t(first) * hp, hp, dkr + std::size_t(k0) * hp, hp);
          tile_gemm<Store::Add>(m, hp, n, TileA<R>{ds, chunk, 1}, kr + std::size_t(k0) * hp, hp, dqr, hp);
        }
        for (int r = 0; r < m && extra > 0; ++r) {
          const std::int64_t token = std::int64_t(b) * T + first + r, column = std::int64_t(g) * h;
          const R *query = qr + std::size_t(first + r) * hp, *grad = dor + std::size_t(first + r) * hp;
          const auto key = [&](int e, int later) { return slots[e].k + (token + later) * slots[e].k_stride + column; };
          const auto value = [&](int e, int later) { return slots[e].v + (token + later) * slots[e].v_stride + column; };
          const auto dkey = [&](int e, int later) { return slots[e].dk ? slots[e].dk + (token + later) * slots[e].k_stride + column : nullptr; };
          const auto dvalue = [&](int e, int later) { return slots[e].dv ? slots[e].dv + (token + later) * slots[e].v_stride + column : nullptr; };
          R *pe = p, *de = ds;  // of the slots of this row
          detail::slot_dots(query, h, extra, key, pe);
          detail::slot_dots(grad, h, extra, value, de);
          const P l = P::splat(log_sum[first + r]), d = P::splat(delta[r]);
          for (int e = 0; e < extra; e += W) {
            const P w = math::exp(load_pack<P>(pe + e, extra - e) - l);
            store_pack(pe + e, w, extra - e);
            store_pack(de + e, w * (load_pack<P>(de + e, extra - e) - d), extra - e);
          }
          detail::slot_mix(de, h, extra, key, dqr + std::size_t(r) * hp);
          detail::slot_spread(de, query, h, extra, dkey);
          detail::slot_spread(pe, grad, h, extra, dvalue);
        }
        if (dq.g) for (int r = 0; r < m; ++r) {
          R* y = dq.g + at + std::size_t(first + r) * s.width();
          rotate<Turn::back>(dqr + std::size_t(r) * hp, p, h, rope.cos_at(first + r), rope.sin_at(first + r), scale);
          for (int j = 0; j < h; ++j) y[j] = p[j] + (dq.add ? y[j] : R(0));
        }
      }
    }
    for (int t = 0; t < T; ++t) {
      const std::size_t to = kv_at + std::size_t(t) * s.kv_width();
      const R* xv = dvr + std::size_t(t) * hp;
      rotate<Turn::back>(dkr + std::size_t(t) * hp, p, h, rope.cos_at(t), rope.sin_at(t), R(1));
      if (dk.g) for (int j = 0; j < h; ++j) dk.g[to + j] = p[j] + (dk.add ? dk.g[to + j] : R(0));
      if (dv.g) for (int j = 0; j < h; ++j) dv.g[to + j] = xv[j] + (dv.add ? dv.g[to + j] : R(0));
    }
  });
  device.memory().release(work, scratch * device.threads() * sizeof(R));
}

}  // namespace depthbench
