// out = causal_attention(q, k, v): rotary positions, grouped heads, one softmax over the past.
//   q (B T, H h)   k, v (B T, Hkv h)   ->   out (B T, H h)
//   slots: depth slots of the same token (MoDA), inside the same softmax; referenced, never concatenated
//   rope is the caller's and must live until the backward pass is over; a Transformer keeps its own
//   throws shape_error where B T, H, Hkv or h do not match
//   cost: 2 B T^2 H h FLOPs forward (half of the square), 2.5 times that backward; saves out and B H T numbers
#pragma once
#include <vector>

#include "depthbench/kernel/block_attention_run.hpp"
#include "depthbench/kernel/causal_attention.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

// Keys are the Hkv h columns of k from k_offset on, values those of v from v_offset on (they may share one array).
template <class Device, class R> struct DepthSlotVar {
  Var<Device, R> k, v;
  int k_offset = 0, v_offset = 0;
};

template <class Device, class R>
Var<Device, R> causal_attention(Var<Device, R> q, Var<Device, R> k, Var<Device, R> v, const AttentionShape& s, const RopeTable<R>& rope,
                                std::vector<DepthSlotVar<Device, R>> slots = {}) {
  const std::int64_t n = std::int64_t(s.batch) * s.seq;
  if (s.kv_heads <= 0 || s.heads % s.kv_heads != 0)
    fail<shape_error>("causal_attention: {} query heads do not divide into {} KV heads", s.heads, s.kv_heads);
  check_shape("causal_attention", "q", q.shape(), {n, s.width()});
  check_shape("causal_attention", "k", k.shape(), {n, s.kv_width()});
  check_shape("causal_attention", "v", v.shape(), {n, s.kv_width()});
  if (rope.seq < s.seq || rope.head_dim != s.head_dim)
    fail<shape_error>("causal_attention: the rope table is for {} positions and head size {}, needs {} and {}", rope.seq, rope.head_dim, s.seq, s.head_dim);
  for (const auto& slot : slots)
    if (slot.k_offset < 0 || slot.v_offset < 0 || slot.k.rows() != n || slot.v.rows() != n || slot.k_offset + s.kv_width() > slot.k.cols() || slot.v_offset + s.kv_width() > slot.v.cols())
      fail<shape_error>("causal_attention: a depth slot has keys {} from column {} and values {} from column {}, needs {} rows and {} columns", slot.k.shape().text(),
                        slot.k_offset, slot.v.shape().text(), slot.v_offset, n, s.kv_width());
  auto& tape = *q.tape;
  const auto pointers = [slots] {
    std::vector<DepthSlot<R>> list;
    for (const auto& slot : slots) list.push_back({slot.k.value() + slot.k_offset, slot.v.value() + slot.v_offset, slot.k.cols(), slot.v.cols()});
    return list;
  };
  auto lse = tape.make({s.batch, s.heads, s.seq});
  auto out = tape.make({n, s.width()});
  causal_attention_forward(tape.device(), s, rope, q.value(), k.value(), v.value(), out.out(), lse.out(), pointers());
  tape.record(2, [&tape, &rope, s, q, k, v, out, lse, slots, pointers] {
    const R* dout = tape.grad(out);
    auto list = pointers();
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (R* g = tape.sum_of_grads(slots[i].k)) list[i].dk = g + slots[i].k_offset;
      if (R* g = tape.sum_of_grads(slots[i].v)) list[i].dv = g + slots[i].v_offset;
    }
    const auto dq = tape.accumulate(q), dk = tape.accumulate(k), dv = tape.accumulate(v);  // after the slots: k may be one
    causal_attention_backward<Device, R>(tape.device(), s, rope, q.value(), k.value(), v.value(), out.value(), lse.value(), dout,
                                         {dq.g, dq.add}, {dk.g, dk.add}, {dv.g, dv.add}, list);
  });
  return out;
}

}  // namespace depthbench
