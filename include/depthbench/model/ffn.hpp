// y = W_2 (silu(W_1 u) * W_3 u)                                               u (N, d) -> y (N, d)
#pragma once
#include "depthbench/model/config.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/op/swiglu.hpp"
#include "depthbench/residual/shape.hpp"

namespace depthbench {

template <class R> struct FfnWeights {
  Parameter<R>*w1, *w3, *w2;  // (f, d)  (f, d)  (d, f)
};

template <class Device, class R, class Init_>
FfnWeights<R> declare_ffn(Parameters<Device, R>& p, const std::string& at, const ModelConfig& c, const Init_& init) {
  return {&p.declare(at + ".w1.weight", {c.ffn_hidden, c.d_model}, init(Weight::w1)),
          &p.declare(at + ".w3.weight", {c.ffn_hidden, c.d_model}, init(Weight::w3)),
          &p.declare(at + ".w2.weight", {c.d_model, c.ffn_hidden}, init(Weight::w2))};
}

template <class Device, class R> Var<Device, R> ffn(Var<Device, R> u, const FfnWeights<R>& w) {
  auto& tape = *u.tape;
  const auto h = swiglu(linear(u, tape.use(*w.w1)), linear(u, tape.use(*w.w3)));  // (N, f)
  return linear(h, tape.use(*w.w2));
}

}  // namespace depthbench
