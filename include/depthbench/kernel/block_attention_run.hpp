// block_attention.hpp and tensor_attention.hpp on a device that runs blocks of threads:
//   device.blocks<R>(count, body)   body(prim, item) for every item in [0, count), on body.threads threads each that share
//                                   body.shared_reals numbers
#pragma once
#include <span>
#include <type_traits>

#include "depthbench/core/error.hpp"
#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/block_attention.hpp"
#include "depthbench/kernel/rope.hpp"
#include "depthbench/kernel/tensor_attention.hpp"

namespace depthbench {

namespace detail {
inline constexpr int most_head_channels = 128;

// Tensor cores multiply what floats are rounded to, and their warps have a size.
template <class R, class Device>
inline constexpr bool has_tensor_cores = std::is_same_v<R, float> && Device::Prim::warp == TensorAttention<1>::warp;

// Calls f with the kernels for a head size: those of tensor cores where the device forms products in bf16.
template <class R, class Device, class F> void with_attention_kernels(const Device& device, int head_dim, F f) {
  if (head_dim > most_head_channels)
    fail<shape_error>("causal_attention: the head size is {}, blocks of threads take {} at most", head_dim, most_head_channels);
  if constexpr (has_tensor_cores<R, Device>) {
    if (device.products() == decltype(device.products())::bf16) {
      if (head_dim <= 16) return f.template operator()<TensorAttentionKernels<1>>();
      if (head_dim <= 32) return f.template operator()<TensorAttentionKernels<2>>();
      if (head_dim <= 48) return f.template operator()<TensorAttentionKernels<3>>();
      if (head_dim <= 64) return f.template operator()<TensorAttentionKernels<4>>();
      if (head_dim <= 96) return f.template operator()<TensorAttentionKernels<6>>();
      return f.template operator()<TensorAttentionKernels<8>>();
    }
  }
  if (head_dim <= 16) return f.template operator()<BlockAttentionKernels<R, 4>>();
  if (head_dim <= 32) return f.template operator()<BlockAttentionKernels<R, 8>>();
  if (head_dim <= 64) return f.template operator()<BlockAttentionKernels<R, 16>>();
  f.template operator()<BlockAttentionKernels<R, 32>>();
}
}  // namespace detail

template <class Device, class R> requires(Device::simt)
void causal_attention_forward(Device& device, const AttentionShape& s, const RopeTable<R>& rope, const R* q, const R* k,
                              const R* v, R* out, R* lse,
                              std::type_identity_t<std::span<const DepthSlot<R>>> slots = {}) {
  const auto cost = AttentionCost::forward(s, int(slots.size()), sizeof(R));
  const auto timing = device.timed(Section::attention, cost.flops + cost.slot_flops, cost.bytes + cost.slot_bytes);
  const auto staged = device.stage(slots);
  detail::with_attention_kernels<R>(device, s.head_dim, [&]<class Kernels>() {
    const typename Kernels::Input in{{s, rope.cosines(), rope.sines(), q, k, v, staged.data(), int(slots.size())}};
    device.template blocks<R>(s.batch * s.heads * in.tiles(), typename Kernels::Forward{in, out, lse});
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
  detail::with_attention_kernels<R>(device, s.head_dim, [&]<class Kernels>() {
    const typename Kernels::Input in{{s, rope.cosines(), rope.sines(), q, k, v, staged.data(), int(slots.size())}};
    const typename Kernels::Backward both{in, out, lse, dout, delta, dq, dk, dv};
    device.template blocks<R>(s.batch * s.kv_heads * in.tiles(), typename Kernels::Queries{both});
    device.template blocks<R>(s.batch * s.kv_heads * in.tiles(), typename Kernels::Keys{both});
  });
  device.memory().release(delta, rows * sizeof(R));
}

}  // namespace depthbench
