// block_attention.hpp on a device that runs blocks of threads:
//   device.blocks<R>(count, body)   body(prim, item) for every item in [0, count), on body.threads threads each that share
//                                   body.shared_reals numbers
#pragma once
#include <span>
#include <type_traits>

#include "depthbench/core/error.hpp"
#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/block_attention.hpp"
#include "depthbench/kernel/rope.hpp"

namespace depthbench {

namespace detail {
// Calls f with the channels of a thread as a compile-time constant.
template <class F> void with_channels(int head_dim, F f) {
  if (head_dim <= 16) return f.template operator()<4>();
  if (head_dim <= 32) return f.template operator()<8>();
  if (head_dim <= 64) return f.template operator()<16>();
  if (head_dim <= 128) return f.template operator()<32>();
  fail<shape_error>("causal_attention: the head size is {}, blocks of threads take 128 at most", head_dim);
}
}  // namespace detail

template <class Device, class R> requires(Device::simt)
void causal_attention_forward(Device& device, const AttentionShape& s, const RopeTable<R>& rope, const R* q, const R* k,
                              const R* v, R* out, R* lse,
                              std::type_identity_t<std::span<const DepthSlot<R>>> slots = {}) {
  const auto cost = AttentionCost::forward(s, int(slots.size()), sizeof(R));
  const auto timing = device.timed(Section::attention, cost.flops + cost.slot_flops, cost.bytes + cost.slot_bytes);
  const auto staged = device.stage(slots);
  detail::with_channels(s.head_dim, [&]<int C>() {
    const BlockAttention<R, C> in{s, rope.cosines(), rope.sines(), q, k, v, staged.data(), int(slots.size())};
    device.template blocks<R>(s.batch * s.heads * in.tiles(), BlockAttentionForward<R, C>{in, out, lse});
  });
}

template <class Device, class R> requires(Device::simt)
void causal_attention_backward(Device& device, const AttentionShape& s, const RopeTable<R>& rope, const R* q, const R* k,
                               const R* v, const R* out, const R* lse, const R* dout, AttentionGradient<R> dq,
                               AttentionGradient<R> dk, AttentionGradient<R> dv,
                               std::type_identity_t<std::span<const DepthSlot<R>>> slots = {}) {
  const auto cost = AttentionCost::backward(s, int(slots.size()), sizeof(R));
  const auto timing = device.timed(Section::attention, cost.flops + cost.slot_flops, cost.bytes + cost.slot_bytes);
  const auto staged = device.stage(slots);
  const std::size_t rows = std::size_t(s.batch) * s.heads * s.seq;
  R* delta = device.memory().template acquire<R>(rows);
  detail::with_channels(s.head_dim, [&]<int C>() {
    const BlockAttention<R, C> in{s, rope.cosines(), rope.sines(), q, k, v, staged.data(), int(slots.size())};
    const BlockAttentionBackward<R, C> both{in, out, lse, dout, delta, dq, dk, dv};
    device.template blocks<R>(s.batch * s.kv_heads * in.tiles(), BlockAttentionQueries<R, C>{both});
    device.template blocks<R>(s.batch * s.kv_heads * in.tiles(), BlockAttentionKeys<R, C>{both});
  });
  device.memory().release(delta, rows * sizeof(R));
}

}  // namespace depthbench
