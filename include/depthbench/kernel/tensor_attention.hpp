// Causal attention of floats with products in bfloat16, for blocks of threads with tensor cores: the same sums, passes and items
// as block_attention.hpp (see there), in O(T) memory and without atomics. After Dao 2023 (FlashAttention-2, arXiv 2307.08691).
//   rounded to bf16   q / sqrt(h) and k after rotation, v, dout, and between two products probabilities and gradients of scores
//   float             every sum, the softmax, its statistics, depth slots
// A block has four warps; each owns 16 rows of a tile of 64 and keeps their sums in registers, while the tiles of the other side
// pass through shared memory.
#pragma once
#include "depthbench/kernel/tensor_tiles.hpp"

namespace depthbench {

// q (B T, H h)   k, v (B T, Hkv h)   ->   out (B T, H h), lse (B, H, T);   item: a tile of queries of one head
template <int K> struct TensorAttentionForward : TensorAttention<K> {
  using Base = TensorAttention<K>;
  using typename Base::Place, typename Base::Rows, typename Base::Sums, typename Base::Word;
  float *out, *lse;

  template <class Prim> DB_FN void operator()(const Prim& prim, int item) const {
    const auto& s = this->s;
    const int tiles = this->tiles(), first = (tiles - 1 - item % tiles) * Base::rows;  // the longest rows first
    const int head = item / tiles % s.heads, b = item / tiles / s.heads, g = head / s.group();
    const Place p(prim);
    auto keys = prim.template shared<Word>(0), values = prim.template shared<Word>(Base::tile);
    Rows query;
    Sums acc;
    float top[2] = {-1e30f, -1e30f}, sum[2] = {};
    this->template load_tile<true>(prim, keys, this->q + this->q_row(b, head, 0), s.width(), first, this->scale());
    prim.sync();
    Base::own(keys, p, query);
    for (int k0 = 0; k0 <= first; k0 += Base::rows) {
      prim.sync();
      this->template load_tile<true>(prim, keys, this->k + this->kv_row(b, g, 0), s.kv_width(), k0, 1);
      this->template load_tile<false>(prim, values, this->v + this->kv_row(b, g, 0), s.kv_width(), k0, 1);
      prim.sync();
      const int past = k0 < first ? Base::chunks : p.first_row / 16 + 1;  // chunks of 16 keys that the warp's queries see
      float score[2 * Base::chunks][4];
      Base::dots(prim, query, keys, p, 0, score);
      if (k0 == first) DB_UNROLL for (int n = 0; n < 2 * Base::chunks; ++n) DB_UNROLL for (int i = 0; i < 4; ++i)
        if (8 * n + 2 * p.t + i % 2 > p.row(i / 2)) score[n][i] = -1e30f;
      weigh(prim, score, top, sum, acc);
      DB_UNROLL for (int m = 0; m < Base::chunks; ++m) {
        if (m >= past) continue;
        Word a[4];
        Base::round(score[2 * m], score[2 * m + 1], a);
        Base::mix(prim, a, values, p, 16 * m, acc);
      }
    }
    DB_UNROLL for (int r = 0; r < 2; ++r) {
      const int t = first + p.row(r);
      sum[r] = Base::row_sum(prim, sum[r]);
      add_slots(prim, query, p, r, this->token(b, t), g, t < s.seq, top[r], sum[r], acc);
      if (t >= s.seq) continue;
      this->template store<false>(acc, p, r, out + this->q_row(b, head, t), t, 1 / sum[r], false);
      if (p.t == 0) lse[this->statistic(b, head, t)] = top[r] + math::log(sum[r]);
    }
  }

 private:
  // Scores of 64 keys join the running softmax and become probabilities, not yet divided by their sum. Sums are of this thread's
  // keys. Key 0 is every row's past, so `top` is a score from the first keys on.
  template <class Prim, int N>
  static DB_FN void weigh(const Prim& prim, float (&score)[N][4], float (&top)[2], float (&sum)[2], Sums& acc) {
    DB_UNROLL for (int r = 0; r < 2; ++r) {
      float higher = top[r];
      DB_UNROLL for (int n = 0; n < N; ++n) higher = math::max(higher, math::max(score[n][2 * r], score[n][2 * r + 1]));
      higher = Base::row_max(prim, higher);
      const float old = math::exp(top[r] - higher);
      top[r] = higher;
      sum[r] *= old;
      DB_UNROLL for (int n = 0; n < N; ++n) DB_UNROLL for (int i = 2 * r; i < 2 * r + 2; ++i) {
        score[n][i] = math::exp(score[n][i] - higher);
        sum[r] += score[n][i];
      }
      scale_row(acc, r, old);
    }
  }
  static DB_FN void scale_row(Sums& acc, int r, float c) {
    DB_UNROLL for (int k = 0; k < K; ++k) DB_UNROLL for (int e = 0; e < 2; ++e)
      DB_UNROLL for (int i = 0; i < 2; ++i) acc.x[k][e][2 * r + i] *= c;
  }
  template <class Prim>
  DB_FN void add_slots(const Prim& prim, const Rows& query, const Place& p, int r, std::int64_t token, int g, bool live, float& top,
                       float& sum, Sums& acc) const {
    const std::int64_t column = std::int64_t(g) * this->s.head_dim;
    const int half = this->s.head_dim / 2;
    for (int e = 0; e < this->extra; ++e) {
      const DepthSlot<float>& slot = this->slots[e];
      const float score = this->row_dot(prim, query, p, r, slot.k + token * slot.k_stride + column, live);
      const float higher = math::max(top, score);
      const float old = math::exp(top - higher), w = math::exp(score - higher);
      const float* value = slot.v + token * slot.v_stride + column;
      scale_row(acc, r, old);
      if (live) this->for_sums(p, r, [&](int c, int i, int j) {
        acc.x[c][0][i] += w * value[j];
        acc.x[c][1][i] += w * value[j + half];
      });
      sum = sum * old + w;
      top = higher;
    }
  }
};

// What the two backward passes share.
template <int K> struct TensorAttentionBackward : TensorAttention<K> {
  const float *out, *lse, *dout;
  float* delta;  // (B, H, T): written by the pass over queries, read by that over keys
  AttentionGradient<float> dq, dk, dv;
};

// item: a tile of queries of all heads that share one KV head, so that a slot's gradient is one thread's work
template <int K> struct TensorAttentionQueries : TensorAttentionBackward<K> {
  using Base = TensorAttention<K>;
  using typename Base::Place, typename Base::Rows, typename Base::Sums, typename Base::Word;
  static constexpr int shared_reals = Base::wide_reals;

  template <class Prim> DB_FN void operator()(const Prim& prim, int item) const {
    const auto& s = this->s;
    const int tiles = this->tiles(), first = (tiles - 1 - item % tiles) * Base::rows;
    const int g = item / tiles % s.kv_heads, b = item / tiles / s.kv_heads;
    for (int head = g * s.group(); head < (g + 1) * s.group(); ++head) one_head(prim, b, g, head, first);
  }

 private:
  template <class Prim> DB_FN void one_head(const Prim& prim, int b, int g, int head, int first) const {
    const auto& s = this->s;
    const int half = s.head_dim / 2;
    const Place p(prim);
    auto keys = prim.template shared<Word>(0), values = prim.template shared<Word>(Base::tile);
    auto grads = prim.template shared<Word>(Base::wide ? Base::shared_reals : Base::tile);
    Rows query;
    Sums dquery;
    prim.sync();
    this->template load_tile<true>(prim, keys, this->q + this->q_row(b, head, 0), s.width(), first, this->scale());
    this->template load_tile<false>(prim, grads, this->dout + this->q_row(b, head, 0), s.width(), first, 1);
    prim.sync();
    Base::own(keys, p, query);
    const auto grad = Base::second_factor(grads, p);
    float log_sum[2], delta[2];
    DB_UNROLL for (int r = 0; r < 2; ++r) {
      const int t = first + p.row(r);
      const bool live = t < s.seq;
      const std::int64_t statistic = this->statistic(b, head, live ? t : 0);
      const float *y = this->out + this->q_row(b, head, t), *dy = this->dout + this->q_row(b, head, t);
      float sum = 0;
      if (live) this->for_sums(p, r, [&](int, int, int j) { sum += y[j] * dy[j] + y[j + half] * dy[j + half]; });
      delta[r] = Base::row_sum(prim, sum);
      log_sum[r] = this->lse[statistic];
      if (live && p.t == 0) this->delta[statistic] = delta[r];
    }
    for (int k0 = 0; k0 <= first; k0 += Base::rows) {
      prim.sync();
      this->template load_tile<true>(prim, keys, this->k + this->kv_row(b, g, 0), s.kv_width(), k0, 1);
      this->template load_tile<false>(prim, values, this->v + this->kv_row(b, g, 0), s.kv_width(), k0, 1);
      prim.sync();
      const int past = k0 < first ? Base::chunks : p.first_row / 16 + 1;
      for (int m = 0; m < past; ++m) {
        float score[2][4], ds[2][4];
        Base::dots(prim, query, keys, p, 16 * m, score);
        Base::dots(prim, grad, values, p, 16 * m, ds);
        DB_UNROLL for (int n = 0; n < 2; ++n) DB_UNROLL for (int i = 0; i < 4; ++i) {
          const int r = i / 2, t = first + p.row(r);
          const bool seen = t < s.seq && k0 + 16 * m + 8 * n + 2 * p.t + i % 2 <= t;
          ds[n][i] = seen ? math::exp(score[n][i] - log_sum[r]) * (ds[n][i] - delta[r]) : 0.f;
        }
        Word a[4];
        Base::round(ds[0], ds[1], a);
        Base::mix(prim, a, keys, p, 16 * m, dquery);
      }
    }
    DB_UNROLL for (int r = 0; r < 2; ++r) {
      const int t = first + p.row(r);
      through_slots(prim, query, grad, p, r, this->token(b, t), g, t < s.seq, log_sum[r], delta[r], dquery);
      if (t < s.seq && this->dq.g)
        this->template store<true>(dquery, p, r, this->dq.g + this->q_row(b, head, t), t, this->scale(), this->dq.add);
    }
  }
  template <class Prim, class Grad>
  DB_FN void through_slots(const Prim& prim, const Rows& query, const Grad& grad, const Place& p, int r, std::int64_t token, int g,
                           bool live, float log_sum, float delta, Sums& dquery) const {
    const std::int64_t column = std::int64_t(g) * this->s.head_dim;
    const int half = this->s.head_dim / 2;
    for (int e = 0; e < this->extra; ++e) {
      const DepthSlot<float>& slot = this->slots[e];
      const std::int64_t k_at = token * slot.k_stride + column, v_at = token * slot.v_stride + column;
      const float score = this->row_dot(prim, query, p, r, slot.k + k_at, live);
      const float dp = this->row_dot(prim, grad, p, r, slot.v + v_at, live);
      const float w = math::exp(score - log_sum), ds = w * (dp - delta);
      if (!live) continue;
      const float* key = slot.k + k_at;
      this->for_sums(p, r, [&](int c, int i, int j) {
        dquery.x[c][0][i] += ds * key[j];
        dquery.x[c][1][i] += ds * key[j + half];
      });
      const auto spread = [&](float* y, const auto& x, float c) {  // y += c x
        if (y) this->for_rows(x, p, r, [&](float a, float b, int j) {
          y[j] += c * a;
          y[j + half] += c * b;
        });
      };
      spread(slot.dk ? slot.dk + k_at : nullptr, query, ds);
      spread(slot.dv ? slot.dv + v_at : nullptr, grad, w);
    }
  }
};

// item: a tile of keys of one KV head
template <int K> struct TensorAttentionKeys : TensorAttentionBackward<K> {
  using Base = TensorAttention<K>;
  using typename Base::Place, typename Base::Rows, typename Base::Sums, typename Base::Word;
  static constexpr int shared_reals = Base::wide_reals;

  template <class Prim> DB_FN void operator()(const Prim& prim, int item) const {
    const auto& s = this->s;
    const int tiles = this->tiles(), first = item % tiles * Base::rows;
    const int g = item / tiles % s.kv_heads, b = item / tiles / s.kv_heads;
    const Place p(prim);
    auto queries = prim.template shared<Word>(0), grads = prim.template shared<Word>(Base::tile);
    auto statistics = prim.template shared<float>(2 * Base::tile);  // lse, then delta, of 64 queries
    auto values = prim.template shared<Word>(Base::wide ? Base::shared_reals : Base::tile);
    Rows key;
    Sums dkey, dvalue;
    this->template load_tile<true>(prim, queries, this->k + this->kv_row(b, g, 0), s.kv_width(), first, 1);
    this->template load_tile<false>(prim, values, this->v + this->kv_row(b, g, 0), s.kv_width(), first, 1);
    prim.sync();
    Base::own(queries, p, key);
    const auto value = Base::second_factor(values, p);
    for (int head = g * s.group(); head < (g + 1) * s.group(); ++head) for (int q0 = first; q0 < s.seq; q0 += Base::rows) {
      prim.sync();
      this->template load_tile<true>(prim, queries, this->q + this->q_row(b, head, 0), s.width(), q0, this->scale());
      this->template load_tile<false>(prim, grads, this->dout + this->q_row(b, head, 0), s.width(), q0, 1);
      const int query = q0 + prim.rank() % Base::rows;
      const float* statistic = (prim.rank() < Base::rows ? this->lse : this->delta) + this->statistic(b, head, 0);
      statistics[prim.rank()] = statistic[query < s.seq ? query : 0];
      prim.sync();
      for (int m = q0 > first ? 0 : p.first_row / 16; m < Base::chunks && q0 + 16 * m < s.seq; ++m) {  // queries that see a key
        float w[2][4], ds[2][4];
        Word a[4];
        Base::dots(prim, key, queries, p, 16 * m, w);
        Base::dots(prim, value, grads, p, 16 * m, ds);
        DB_UNROLL for (int n = 0; n < 2; ++n) DB_UNROLL for (int i = 0; i < 4; ++i) {
          const int j = 16 * m + 8 * n + 2 * p.t + i % 2;
          const float log_sum = statistics[j], delta = statistics[Base::rows + j];
          const bool seen = q0 + j >= first + p.row(i / 2) && q0 + j < s.seq;
          w[n][i] = seen ? math::exp(w[n][i] - log_sum) : 0.f;
          ds[n][i] = w[n][i] * (ds[n][i] - delta);
        }
        Base::round(w[0], w[1], a);
        Base::mix(prim, a, grads, p, 16 * m, dvalue);
        Base::round(ds[0], ds[1], a);
        Base::mix(prim, a, queries, p, 16 * m, dkey);
      }
    }
    DB_UNROLL for (int r = 0; r < 2; ++r) {
      const int t = first + p.row(r);
      if (t >= s.seq) continue;
      if (this->dv.g) this->template store<false>(dvalue, p, r, this->dv.g + this->kv_row(b, g, t), t, 1, this->dv.add);
      if (this->dk.g) this->template store<true>(dkey, p, r, this->dk.g + this->kv_row(b, g, t), t, 1, this->dk.add);
    }
  }
};

template <int K> struct TensorAttentionKernels {
  using Input = TensorAttention<K>;
  using Forward = TensorAttentionForward<K>;
  using Backward = TensorAttentionBackward<K>;
  using Queries = TensorAttentionQueries<K>;
  using Keys = TensorAttentionKeys<K>;
};

}  // namespace depthbench
