// Causal attention for blocks of threads: the same sums as causal_attention.hpp (see there), a tile of 32 queries or keys
// a block, in O(T) memory and without atomics: every number is written by one thread, in an order that shapes decide.
//   forward    a tile of queries meets the tiles of keys up to its own; online softmax (Dao et al. 2022, arXiv 2205.14135)
//   queries    dq and delta_t = <dout_t, out_t>, and the gradients of depth slots: the same walk
//   keys       dk and dv: a tile of keys meets the tiles of queries from its own on
// Four threads share a row: thread `part` holds channels 16 i + 4 part .. + 3, so that a row of a tile is read in 128-bit
// pieces. Sums are R: float, or double in tests. Products run on ordinary cores; on tensor cores: tensor_attention.hpp.
#pragma once
#include "depthbench/kernel/attention_shape.hpp"
#include "depthbench/kernel/pack.hpp"
#include "depthbench/kernel/scalar_math.hpp"

namespace depthbench {

// C: channels of a thread; 4 C >= h. Prim: as of a SimtTeam (simt_team.hpp).
template <class R, int C> struct BlockAttention : AttentionInput<R> {
  static_assert(C % 4 == 0);
  static constexpr int rows = 32, parts = 4, threads = rows * parts, padded = 4 * C;
  static constexpr int tile = rows * padded;
  static constexpr int shared_reals = 2 * tile + 2 * rows;  // two tiles; two numbers a row

  using AttentionInput<R>::s;

  DB_FN int tiles() const { return (s.seq + rows - 1) / rows; }
  static DB_FN int channel(int part, int i) { return 16 * (i / 4) + 4 * part + i % 4; }

  // ---- between memory, the tiles and the threads
  // Rows first .. first + 31 of x (row 0 at x, rows ld apart), rotated or not, times c; zero beyond T and h.
  template <bool rotated, class Prim, class Shared>
  DB_FN void load_tile(const Prim& prim, Shared to, const R* x, std::int64_t ld, int first, R c) const {
    const int h = s.head_dim, half = h / 2;
    for (int i = prim.rank(); i < rows * half; i += prim.size()) {
      const int r = i / half, j = i % half, t = first + r;
      R a = 0, b = 0;
      if (t < s.seq) {
        a = x[t * ld + j] * c;
        b = x[t * ld + j + half] * c;
        if constexpr (rotated) {
          const R co = this->cos[std::int64_t(t) * half + j], si = this->sin[std::int64_t(t) * half + j], turned = a * co - b * si;
          b = b * co + a * si;
          a = turned;
        }
      }
      to[r * padded + j] = a;
      to[r * padded + j + half] = b;
    }
    const int rest = padded - h;
    for (int i = prim.rank(); i < rows * rest; i += prim.size()) to[i / rest * padded + h + i % rest] = R(0);
  }
  // y (+)= c * the rows of a tile, turned back
  template <class Prim, class Shared>
  DB_FN void store_turned_back(const Prim& prim, Shared from, R* y, std::int64_t ld, int first, R c, bool add) const {
    const int half = s.head_dim / 2;
    for (int i = prim.rank(); i < rows * half; i += prim.size()) {
      const int r = i / half, j = i % half, t = first + r;
      if (t >= s.seq) continue;
      const R a = from[r * padded + j], b = from[r * padded + j + half];
      const R co = this->cos[std::int64_t(t) * half + j], si = this->sin[std::int64_t(t) * half + j];
      R *low = y + t * ld + j, *high = low + half;
      *low = c * (a * co + b * si) + (add ? *low : R(0));
      *high = c * (b * co - a * si) + (add ? *high : R(0));
    }
  }
  // This thread's channels of a row of a tile.
  template <class Shared> static DB_FN void own(const Shared& tile_at, int row, int part, R (&x)[C]) {
    DB_UNROLL for (int i = 0; i < C; i += 4) four(tile_at, row * padded + channel(part, i), x + i);
  }
  template <class Shared> static DB_FN void four(const Shared& from, int at, R* x) {
    if constexpr (std::is_pointer_v<Shared>) {
      const auto raw = *reinterpret_cast<const Raw<R, 4>*>(from + at);
      DB_UNROLL for (int i = 0; i < 4; ++i) x[i] = raw.x[i];
    } else {
      for (int i = 0; i < 4; ++i) x[i] = from[at + i];
    }
  }
  template <class Shared> static DB_FN void put(const Shared& to, int row, int part, const R (&x)[C]) {
    DB_UNROLL for (int i = 0; i < C; ++i) to[row * padded + channel(part, i)] = x[i];
  }
  DB_FN void load_own(const R* x, int part, bool live, R (&y)[C]) const {
    DB_UNROLL for (int i = 0; i < C; ++i) y[i] = live && channel(part, i) < s.head_dim ? R(x[channel(part, i)]) : R(0);
  }
  template <class F> DB_FN void for_own(int part, F f) const {  // f(i, channel) of the channels that exist
    DB_UNROLL for (int i = 0; i < C; ++i) if (channel(part, i) < s.head_dim) f(i, channel(part, i));
  }

  // <a, b> over all channels, on the four threads of a row. All threads of a warp take part.
  template <class Prim> static DB_FN R row_dot(const Prim& prim, const R (&a)[C], const R (&b)[C]) {
    R sum = 0;
    DB_UNROLL for (int i = 0; i < C; ++i) sum += a[i] * b[i];
    sum += prim.shfl_xor(sum, 1);
    return sum + prim.shfl_xor(sum, 2);
  }
};

// q (B T, H h)   k, v (B T, Hkv h)   ->   out (B T, H h), lse (B, H, T);   item: a tile of queries of one head
template <class R, int C> struct BlockAttentionForward : BlockAttention<R, C> {
  using Base = BlockAttention<R, C>;
  R *out, *lse;

  template <class Prim> DB_FN void operator()(const Prim& prim, int item) const {
    const auto& s = this->s;
    const int tiles = this->tiles(), first = (tiles - 1 - item % tiles) * Base::rows;  // the longest rows first
    const int head = item / tiles % s.heads, b = item / tiles / s.heads, g = head / s.group();
    const int row = prim.rank() / Base::parts, part = prim.rank() % Base::parts, t = first + row;
    const bool live = t < s.seq;
    auto keys = prim.template shared<R>(0), values = prim.template shared<R>(Base::tile);
    R query[C], sum = 0, top = R(-1e30), acc[C] = {};
    this->template load_tile<true>(prim, keys, this->q + this->q_row(b, head, 0), s.width(), first, this->scale());
    prim.sync();
    Base::own(keys, row, part, query);
    for (int k0 = 0; k0 <= first; k0 += Base::rows) {
      prim.sync();
      this->template load_tile<true>(prim, keys, this->k + this->kv_row(b, g, 0), s.kv_width(), k0, R(1));
      this->template load_tile<false>(prim, values, this->v + this->kv_row(b, g, 0), s.kv_width(), k0, R(1));
      prim.sync();
      for (int j = 0; j < Base::rows; j += 4) {
        R score[4];
        DB_UNROLL for (int i = 0; i < 4; ++i) {
          R key[C];
          Base::own(keys, j + i, part, key);
          const R x = Base::row_dot(prim, query, key);
          score[i] = k0 + j + i <= t ? +x : R(-1e30);
        }
        weigh(score, values, j, part, top, sum, acc);
      }
    }
    for (int e = 0; e < this->extra; ++e) {
      const DepthSlot<R>& slot = this->slots[e];
      const std::int64_t at = std::int64_t(b) * s.seq + t, column = std::int64_t(g) * s.head_dim;
      R key[C], value[C];
      this->load_own(slot.k + at * slot.k_stride + column, part, live, key);
      this->load_own(slot.v + at * slot.v_stride + column, part, live, value);
      const R score = Base::row_dot(prim, query, key), higher = math::max(top, score);
      const R old = math::exp(top - higher), p = math::exp(score - higher);
      DB_UNROLL for (int i = 0; i < C; ++i) acc[i] = acc[i] * old + p * value[i];
      sum = sum * old + p;
      top = higher;
    }
    if (!live) return;
    R* y = out + this->q_row(b, head, t);
    this->for_own(part, [&](int i, int c) { y[c] = acc[i] / sum; });
    if (part == 0) lse[this->statistic(b, head, t)] = top + math::log(sum);
  }

 private:
  // Four more keys in the running softmax. Key 0 is every row's past, so `top` is a score from the first four on.
  template <class Shared>
  static DB_FN void weigh(const R (&score)[4], const Shared& values, int j, int part, R& top, R& sum, R (&acc)[C]) {
    R higher = top;
    DB_UNROLL for (int i = 0; i < 4; ++i) higher = math::max(higher, score[i]);
    const R old = math::exp(top - higher);
    sum *= old;
    DB_UNROLL for (int i = 0; i < C; ++i) acc[i] *= old;
    DB_UNROLL for (int i = 0; i < 4; ++i) {
      const R p = math::exp(score[i] - higher);
      R value[C];
      Base::own(values, j + i, part, value);
      sum += p;
      DB_UNROLL for (int c = 0; c < C; ++c) acc[c] += p * value[c];
    }
    top = higher;
  }
};

// What the two backward passes share.
template <class R, int C> struct BlockAttentionBackward : BlockAttention<R, C> {
  const R *out, *lse, *dout;
  R* delta;  // (B, H, T): written by the pass over queries, read by that over keys
  AttentionGradient<R> dq, dk, dv;
};

// item: a tile of queries of all heads that share one KV head, so that a slot's gradient is one thread's work
template <class R, int C> struct BlockAttentionQueries : BlockAttentionBackward<R, C> {
  using Base = BlockAttention<R, C>;

  template <class Prim> DB_FN void operator()(const Prim& prim, int item) const {
    const auto& s = this->s;
    const int tiles = this->tiles(), first = (tiles - 1 - item % tiles) * Base::rows;
    const int g = item / tiles % s.kv_heads, b = item / tiles / s.kv_heads;
    for (int head = g * s.group(); head < (g + 1) * s.group(); ++head) one_head(prim, b, g, head, first);
  }

 private:
  template <class Prim> DB_FN void one_head(const Prim& prim, int b, int g, int head, int first) const {
    const auto& s = this->s;
    const int row = prim.rank() / Base::parts, part = prim.rank() % Base::parts, t = first + row;
    const bool live = t < s.seq;
    auto keys = prim.template shared<R>(0), values = prim.template shared<R>(Base::tile);
    R query[C], grad[C], dquery[C] = {};
    prim.sync();
    this->template load_tile<true>(prim, keys, this->q + this->q_row(b, head, 0), s.width(), first, this->scale());
    prim.sync();
    Base::own(keys, row, part, query);
    const std::int64_t at = this->q_row(b, head, live ? t : 0), statistic = this->statistic(b, head, live ? t : 0);
    this->load_own(this->dout + at, part, live, grad);
    R y[C];
    this->load_own(this->out + at, part, live, y);
    const R delta = Base::row_dot(prim, grad, y), log_sum = this->lse[statistic];
    if (live && part == 0) this->delta[statistic] = delta;
    for (int k0 = 0; k0 <= first; k0 += Base::rows) {
      prim.sync();
      this->template load_tile<true>(prim, keys, this->k + this->kv_row(b, g, 0), s.kv_width(), k0, R(1));
      this->template load_tile<false>(prim, values, this->v + this->kv_row(b, g, 0), s.kv_width(), k0, R(1));
      prim.sync();
      for (int j = 0; j < Base::rows; ++j) {
        R key[C], value[C];
        Base::own(keys, j, part, key);
        Base::own(values, j, part, value);
        const R score = Base::row_dot(prim, query, key), dp = Base::row_dot(prim, grad, value);
        const R ds = live && k0 + j <= t ? math::exp(score - log_sum) * (dp - delta) : R(0);
        DB_UNROLL for (int i = 0; i < C; ++i) dquery[i] += ds * key[i];
      }
    }
    for (int e = 0; e < this->extra; ++e) {
      const DepthSlot<R>& slot = this->slots[e];
      const std::int64_t token = std::int64_t(b) * s.seq + t, column = std::int64_t(g) * s.head_dim;
      const std::int64_t k_at = token * slot.k_stride + column, v_at = token * slot.v_stride + column;
      R key[C], value[C];
      this->load_own(slot.k + k_at, part, live, key);
      this->load_own(slot.v + v_at, part, live, value);
      const R score = Base::row_dot(prim, query, key), dp = Base::row_dot(prim, grad, value);
      const R p = math::exp(score - log_sum), ds = p * (dp - delta);
      DB_UNROLL for (int i = 0; i < C; ++i) dquery[i] += ds * key[i];
      if (!live) continue;
      if (slot.dk) this->for_own(part, [&](int i, int c) { slot.dk[k_at + c] += ds * query[i]; });
      if (slot.dv) this->for_own(part, [&](int i, int c) { slot.dv[v_at + c] += p * grad[i]; });
    }
    if (!this->dq.g) return;
    prim.sync();
    Base::put(keys, row, part, dquery);
    prim.sync();
    this->store_turned_back(prim, keys, this->dq.g + this->q_row(b, head, 0), s.width(), first, this->scale(), this->dq.add);
  }
};

// item: a tile of keys of one KV head
template <class R, int C> struct BlockAttentionKeys : BlockAttentionBackward<R, C> {
  using Base = BlockAttention<R, C>;

  template <class Prim> DB_FN void operator()(const Prim& prim, int item) const {
    const auto& s = this->s;
    const int tiles = this->tiles(), first = item % tiles * Base::rows;
    const int g = item / tiles % s.kv_heads, b = item / tiles / s.kv_heads;
    const int row = prim.rank() / Base::parts, part = prim.rank() % Base::parts, t = first + row;
    auto queries = prim.template shared<R>(0), grads = prim.template shared<R>(Base::tile);
    auto statistics = prim.template shared<R>(2 * Base::tile);  // lse, then delta, of 32 queries
    R key[C], value[C], dkey[C] = {}, dvalue[C] = {};
    this->template load_tile<true>(prim, queries, this->k + this->kv_row(b, g, 0), s.kv_width(), first, R(1));
    prim.sync();
    Base::own(queries, row, part, key);
    const bool live = t < s.seq;
    this->load_own(this->v + this->kv_row(b, g, live ? t : 0), part, live, value);
    for (int head = g * s.group(); head < (g + 1) * s.group(); ++head) for (int q0 = first; q0 < s.seq; q0 += Base::rows) {
      prim.sync();
      this->template load_tile<true>(prim, queries, this->q + this->q_row(b, head, 0), s.width(), q0, this->scale());
      this->template load_tile<false>(prim, grads, this->dout + this->q_row(b, head, 0), s.width(), q0, R(1));
      if (prim.rank() < 2 * Base::rows) {
        const int j = prim.rank() % Base::rows;
        const std::int64_t at = this->statistic(b, head, q0 + j < s.seq ? q0 + j : 0);
        statistics[prim.rank()] = prim.rank() < Base::rows ? R(this->lse[at]) : R(this->delta[at]);
      }
      prim.sync();
      for (int j = 0; j < Base::rows; ++j) {
        R query[C], grad[C];
        Base::own(queries, j, part, query);
        Base::own(grads, j, part, grad);
        const R score = Base::row_dot(prim, key, query), dp = Base::row_dot(prim, value, grad);
        const R log_sum = statistics[j], delta = statistics[Base::rows + j];
        const R p = live && q0 + j >= t && q0 + j < s.seq ? math::exp(score - log_sum) : R(0), ds = p * (dp - delta);
        DB_UNROLL for (int i = 0; i < C; ++i) {
          dvalue[i] += p * grad[i];
          dkey[i] += ds * query[i];
        }
      }
    }
    if (this->dv.g && live) {
      R* y = this->dv.g + this->kv_row(b, g, t);
      this->for_own(part, [&](int i, int c) { y[c] = dvalue[i] + (this->dv.add ? y[c] : R(0)); });
    }
    if (!this->dk.g) return;
    prim.sync();
    Base::put(queries, row, part, dkey);
    prim.sync();
    this->store_turned_back(prim, queries, this->dk.g + this->kv_row(b, g, 0), s.kv_width(), first, R(1), this->dk.add);
  }
};

template <class R, int C> struct BlockAttentionKernels {
  using Input = BlockAttention<R, C>;
  using Forward = BlockAttentionForward<R, C>;
  using Backward = BlockAttentionBackward<R, C>;
  using Queries = BlockAttentionQueries<R, C>;
  using Keys = BlockAttentionKeys<R, C>;
};

}  // namespace depthbench
