// exp, tanh, sigmoid and maxima of whole packs.
// float on the CPU: polynomials after Cody-Waite argument reduction (minimax coefficients of the Cephes library,
// S. Moshier, "Methods and Programs for Mathematical Functions", 1989), checked in tests to 2 ulp.
// double, and every lane of a GPU thread: the scalar function.
#pragma once
#include "depthbench/kernel/pack.hpp"
#include "depthbench/kernel/scalar_math.hpp"

namespace depthbench::math {

namespace detail {
template <class P, class F> DB_FN P each(P x, F f) {
  P y = x;
  DB_UNROLL for (int i = 0; i < P::width; ++i) y.set(i, f(x.get(i)));
  return y;
}
struct Exp { template <class R> DB_FN R operator()(R x) const { return math::exp(x); } };
struct Tanh { template <class R> DB_FN R operator()(R x) const { return math::tanh(x); } };

#if !DB_DEVICE_PASS
template <int W> struct FloatVectors {
  typedef float F __attribute__((vector_size(W * 4)));
  typedef std::uint32_t U __attribute__((vector_size(W * 4)));

  static DB_HOST_FN F all(float a) { return a - F{}; }

  static DB_HOST_FN F exp(F x) {
    const F hi = all(88.7228394f), lo = all(-87.3365402f);  // beyond: infinity; below the normal numbers: zero
    const F c = x > hi ? hi : x;
    const F shifted = c * 1.44269504f + 12582912.f;  // 1.5 * 2^23: the low bits now hold the nearest integer to x / ln 2
    const F n = shifted - 12582912.f;
    const F r = (c - n * 0.693359375f) - n * -2.12194440e-4f;
    F p = all(1.9875691500e-4f);
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const F y = (p * (r * r) + r) + 1.f;
    const F scaled = (F)((U)y + (((U)shifted - 0x4B400000u) << 23));  // times 2^n; 0x4B400000: the bits of 1.5 * 2^23
    const F positive = x < lo ? F{} : scaled;
    const F finite = x > hi ? all(__builtin_inff()) : positive;
    return x != x ? x : finite;
  }
  static DB_HOST_FN F tanh(F x) {
    const F a = x < 0.f ? -x : x, s = x * x;
    F p = all(-5.70498872745e-3f);
    p = p * s + 2.06390887954e-2f;
    p = p * s + -5.37397155531e-2f;
    p = p * s + 1.33314422036e-1f;
    p = p * s + -3.33332819422e-1f;
    const F small = x + x * s * p;
    const F large = 1.f - 2.f / (exp(a + a) + 1.f);
    const F big = x < 0.f ? -large : large;
    const F finite = a < 0.625f ? small : big;
    return x != x ? x : finite;
  }
};
#endif
}  // namespace detail

template <class R, int W> DB_HOST_FN Simd<R, W> exp(Simd<R, W> x) {
#if !DB_DEVICE_PASS
  if constexpr (std::is_same_v<R, float>) return {detail::FloatVectors<W>::exp(x.x)};
  else
#endif
    return detail::each(x, detail::Exp{});
}
template <class R, int W> DB_HOST_FN Simd<R, W> tanh(Simd<R, W> x) {
#if !DB_DEVICE_PASS
  if constexpr (std::is_same_v<R, float>) return {detail::FloatVectors<W>::tanh(x.x)};
  else
#endif
    return detail::each(x, detail::Tanh{});
}
template <class R, int W> DB_HOST_FN Simd<R, W> max(Simd<R, W> a, Simd<R, W> b) {
#if DB_DEVICE_PASS
  return a;
#else
  const auto mask = a.x > b.x;
  return {mask ? a.x : b.x};
#endif
}
template <class R, int W> DB_FN Lane<R, W> exp(Lane<R, W> x) { return detail::each(x, detail::Exp{}); }
template <class R, int W> DB_FN Lane<R, W> tanh(Lane<R, W> x) { return detail::each(x, detail::Tanh{}); }
template <class R, int W> DB_FN Lane<R, W> max(Lane<R, W> a, Lane<R, W> b) {
  DB_UNROLL for (int i = 0; i < W; ++i) a.x[i] = math::max(a.x[i], b.x[i]);
  return a;
}

template <class R, int W> DB_HOST_FN Simd<R, W> sigmoid(Simd<R, W> x) {
  const auto one = Simd<R, W>::splat(R(1));
  return one / (one + exp(Simd<R, W>::splat(R(0)) - x));
}
template <class R, int W> DB_FN Lane<R, W> sigmoid(Lane<R, W> x) {
  const auto one = Lane<R, W>::splat(R(1));
  return one / (one + exp(Lane<R, W>::splat(R(0)) - x));
}

}  // namespace depthbench::math
