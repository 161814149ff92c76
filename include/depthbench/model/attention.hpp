// y = W_out attention(W_q u, W_k u, W_v u)                                    u (N, d) -> y (N, d)
#pragma once
#include "depthbench/model/config.hpp"
#include "depthbench/op/causal_attention.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/residual/shape.hpp"

namespace depthbench {

template <class R> struct AttentionWeights {
  Parameter<R>*q, *k, *v, *out;  // (d, d)  (kv, d)  (kv, d)  (d, d)
};

template <class Device, class R, class Init_>
AttentionWeights<R> declare_attention(Parameters<Device, R>& p, const std::string& at, const ModelConfig& c, const Init_& init) {
  return {&p.declare(at + ".w_q.weight", {c.d_model, c.d_model}, init(Weight::q)),
          &p.declare(at + ".w_k.weight", {c.kv_width(), c.d_model}, init(Weight::k)),
          &p.declare(at + ".w_v.weight", {c.kv_width(), c.d_model}, init(Weight::v)),
          &p.declare(at + ".w_out.weight", {c.d_model, c.d_model}, init(Weight::out))};
}

template <class Device, class R> struct Attended {
  Var<Device, R> y, k, v;  // (N, d)  (N, kv)  (N, kv); k and v as projected
};

template <class Device, class R>
Attended<Device, R> attention(Var<Device, R> u, const AttentionWeights<R>& w, const AttentionShape& shape, const RopeTable<R>& rope,
                              std::vector<DepthSlotVar<Device, R>> slots = {}) {
  auto& tape = *u.tape;
  const auto q = linear(u, tape.use(*w.q));                 // (N, d)
  const auto k = linear(u, tape.use(*w.k));                 // (N, kv)
  const auto v = linear(u, tape.use(*w.v));                 // (N, kv)
  return {linear(causal_attention(q, k, v, shape, rope, std::move(slots)), tape.use(*w.out)), k, v};
}

}  // namespace depthbench
