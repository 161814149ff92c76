// AdamW (Loshchilov & Hutter 2019, alg. 2), decay as p *= 1 - lr wd, over any run of parameters.
#pragma once
#include <cmath>
#include <cstddef>

#include "depthbench/config.hpp"

namespace depthbench {

template <class R> struct AdamwStep {
  R lr, beta1, beta2, eps, decay;  // decay: lr * weight decay, 0 for none
  R bias1, bias2;                  // 1 - beta^step
  R grad_scale;                    // clipping
  // One number: p, m, v change; g is read.
  // Vectorised by the compiler where -fno-math-errno lets it (std::sqrt must not set errno).
  DB_FN void at(R& p, R& m, R& v, R g) const {
    g *= grad_scale;
    m = beta1 * m + (R(1) - beta1) * g;
    v = beta2 * v + (R(1) - beta2) * g * g;
    p = p - decay * p - lr * (m / bias1) / (std::sqrt(v / bias2) + eps);
  }
};

}  // namespace depthbench
