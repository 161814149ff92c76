// What all forms of causal attention take.
#pragma once
#include <cstddef>
#include <cstdint>

#include "depthbench/config.hpp"

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

// Half of the square of scores, and the slots'. Backward: five products where forward has two.
struct AttentionCost {
  double flops, bytes, backward_flops, backward_bytes;
  AttentionCost(const AttentionShape& s, int slots, std::size_t element) {
    const double rows = double(s.batch) * s.seq, cells = rows * s.heads * (double(s.seq) / 2 + slots);
    const double io = rows * (s.width() + s.kv_width()) * double(element), slot_bytes = 2 * rows * slots * s.kv_width() * double(element);
    flops = 4 * cells * s.head_dim;
    bytes = 2 * io + slot_bytes;
    backward_flops = 2.5 * flops;
    backward_bytes = 4 * io + 3 * slot_bytes;
  }
};

}  // namespace depthbench
