// What all forms of causal attention take.
#pragma once
#include <cstddef>
#include <cstdint>

#include "depthbench/kernel/scalar_math.hpp"

namespace depthbench {

struct AttentionShape {
  int batch, seq, heads, kv_heads, head_dim;
  DB_FN int group() const { return heads / kv_heads; }
  DB_FN int width() const { return heads * head_dim; }        // of q and out
  DB_FN int kv_width() const { return kv_heads * head_dim; }  // of k and v
};

// One depth slot: keys and values of every token, rows apart by their strides. The gradients are added to.
template <class R> struct DepthSlot {
  const R *k, *v;   // (B T, Hkv h)
  std::int64_t k_stride, v_stride;
  R *dk = nullptr, *dv = nullptr;
};

// Adds to or overwrites dq, dk, dv as their `add` says; a null gradient is not wanted.
template <class R> struct AttentionGradient {
  R* g;
  bool add;
};

// What the kernels for blocks of threads read, and where in it things lie.
template <class R> struct AttentionInput {
  AttentionShape s;
  const R *cos, *sin;  // (T, h / 2)
  const R *q, *k, *v;
  const DepthSlot<R>* slots;
  int extra;  // number of slots

  DB_FN R scale() const { return math::rsqrt(R(s.head_dim)); }
  DB_FN std::int64_t token(int b, int t) const { return std::int64_t(b) * s.seq + t; }
  DB_FN std::int64_t q_row(int b, int head, int t) const { return token(b, t) * s.width() + std::int64_t(head) * s.head_dim; }
  DB_FN std::int64_t kv_row(int b, int g, int t) const { return token(b, t) * s.kv_width() + std::int64_t(g) * s.head_dim; }
  DB_FN std::int64_t statistic(int b, int head, int t) const { return (std::int64_t(b) * s.heads + head) * s.seq + t; }  // (B, H, T)
};

// What an attention has to do, depth slots apart. Half of the square of scores; five products backward, two forward.
struct AttentionCost {
  double flops, bytes, slot_flops, slot_bytes;
  static AttentionCost forward(const AttentionShape& s, int slots, std::size_t element) {
    const double rows = double(s.batch) * s.seq, cell = 4.0 * rows * s.heads * s.head_dim;
    return {cell * s.seq / 2, 2 * rows * (s.width() + s.kv_width()) * double(element), cell * slots,
            2 * rows * slots * s.kv_width() * double(element)};
  }
  static AttentionCost backward(const AttentionShape& s, int slots, std::size_t element) {
    const AttentionCost f = forward(s, slots, element);
    return {2.5 * f.flops, 2 * f.bytes, 2.5 * f.slot_flops, 3 * f.slot_bytes};
  }
};

}  // namespace depthbench
