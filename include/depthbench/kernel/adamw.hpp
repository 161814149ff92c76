// AdamW (Loshchilov & Hutter 2019, alg. 2), decay as p *= 1 - lr wd, over any run of parameters.
#pragma once
#include <cmath>
#include <cstddef>

#include "depthbench/config.hpp"
#include "depthbench/core/dtype.hpp"

namespace depthbench {

// What is kept of a number after every operation: all of it, or what bfloat16 holds (round to nearest even).
struct KeepAll {
  template <class R> static DB_FN R of(R x) { return x; }
};
struct KeepBf16 {
  template <class R> static DB_FN R of(R x) { return R(float(bfloat16(float(x)))); }
};

template <class R> struct AdamwStep {
  R lr, beta1, beta2, eps, decay;  // decay: lr * weight decay, 0 for none
  R bias1, bias2;                  // 1 - beta^step
  R grad_scale;                    // clipping
  static constexpr int flops = 16;  // of one number; those of plain numbers (1 - beta1, lr / bias1) not counted
  // One number: p, m, v change; g is read. Vectorised by the compiler where -fno-math-errno lets it (std::sqrt must not
  // set errno). With KeepBf16 the operations, and so the roundings, are those of PyTorch's AdamW on bfloat16 tensors.
  template <class Keep> DB_FN void at(R& p, R& m, R& v, R g) const {
    g = Keep::of(g * grad_scale);
    p = Keep::of(p * (R(1) - decay));
    m = Keep::of(beta1 * m + (R(1) - beta1) * g);
    v = Keep::of(Keep::of(beta2 * v) + (R(1) - beta2) * g * g);
    const R denominator = Keep::of(Keep::of(Keep::of(std::sqrt(v)) / std::sqrt(bias2)) + eps);
    p = Keep::of(p - lr / bias1 * m / denominator);
  }
};

}  // namespace depthbench
