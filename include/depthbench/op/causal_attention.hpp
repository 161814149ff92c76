// out = causal_attention(q, k, v): rotary positions, grouped heads, one softmax over the past.
//   q (B T, H h)   k, v (B T, Hkv h)   ->   out (B T, H h)
//   throws shape_error where B T, H, Hkv or h do not match
//   cost: 2 B T^2 H h FLOPs forward (half of the square), 2.5 times that backward; saves out and B H T numbers
#pragma once
#include "depthbench/kernel/causal_attention.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R>
Var<Device, R> causal_attention(Var<Device, R> q, Var<Device, R> k, Var<Device, R> v, const AttentionShape& s, const RopeTable<R>& rope) {
  const std::int64_t n = std::int64_t(s.batch) * s.seq;
  if (s.kv_heads <= 0 || s.heads % s.kv_heads != 0)
    fail<shape_error>("causal_attention: {} query heads do not divide into {} KV heads", s.heads, s.kv_heads);
  check_shape("causal_attention", "q", q.shape(), {n, s.width()});
  check_shape("causal_attention", "k", k.shape(), {n, s.kv_width()});
  check_shape("causal_attention", "v", v.shape(), {n, s.kv_width()});
  if (rope.seq < s.seq || rope.head_dim != s.head_dim)
    fail<shape_error>("causal_attention: the rope table is for {} positions and head size {}, needs {} and {}", rope.seq, rope.head_dim, s.seq, s.head_dim);
  auto& tape = *q.tape;
  auto lse = tape.make({s.batch, s.heads, s.seq});
  auto out = tape.make({n, s.width()});
  causal_attention_forward(tape.device(), s, rope, q.value(), k.value(), v.value(), out.out(), lse.out());
  tape.record(2, [&tape, &rope, s, q, k, v, out, lse] {
    const R* dout = tape.grad(out);
    const auto dq = tape.accumulate(q), dk = tape.accumulate(k), dv = tape.accumulate(v);
    causal_attention_backward<Device, R>(tape.device(), s, rope, q.value(), k.value(), v.value(), out.value(), lse.value(), dout,
                                         {dq.g, dq.add}, {dk.g, dk.add}, {dv.g, dv.add});
  });
  return out;
}

}  // namespace depthbench
