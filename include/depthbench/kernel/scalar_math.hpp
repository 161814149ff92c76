// Scalar functions of kernel bodies, one spelling for every place they run.
// A number type of one's own brings its functions along (argument-dependent lookup). On a GPU, float uses the fast hardware forms; tests that compare a GPU with a CPU allow for it.
#pragma once
#include "depthbench/config.hpp"
#if !DB_DEVICE_PASS
#include <cmath>
#endif

namespace depthbench::math {

template <class R> DB_FN R exp(R x) {
#if DB_DEVICE_PASS
  if constexpr (sizeof(R) == 4) return __expf(x); else return ::exp(x);
#else
  using std::exp;
  return exp(x);
#endif
}
template <class R> DB_FN R log(R x) {
#if DB_DEVICE_PASS
  if constexpr (sizeof(R) == 4) return __logf(x); else return ::log(x);
#else
  using std::log;
  return log(x);
#endif
}
template <class R> DB_FN R rsqrt(R x) {
#if DB_DEVICE_PASS
  if constexpr (sizeof(R) == 4) return ::rsqrtf(x); else return ::rsqrt(x);
#else
  using std::sqrt;
  return R(1) / sqrt(x);
#endif
}
template <class R> DB_FN R reciprocal(R x) {
#if DB_DEVICE_PASS
  if constexpr (sizeof(R) == 4) return __fdividef(1.f, x); else return R(1) / x;
#else
  return R(1) / x;
#endif
}
template <class R> DB_FN R tanh(R x) {
#if DB_DEVICE_PASS
  if constexpr (sizeof(R) == 4) return ::tanhf(x); else return ::tanh(x);
#else
  using std::tanh;
  return tanh(x);
#endif
}
template <class R> DB_FN R sigmoid(R x) {  // 1 / (1 + e^-x); finite for any finite x
  return reciprocal(R(1) + exp(-x));
}
template <class R> DB_FN R max(R a, R b) { return a > b ? +a : +b; }

}  // namespace depthbench::math
