// A pack: W neighbouring channels, moved and computed on at once.
//   Simd<R, W>   one CPU vector register, through the vector extension of GCC and clang. (An array in a struct is
//                10 to 60 times slower under g++ 12.)
//   Lane<R, W>   the channels of one GPU thread: an array in registers, moved by 128-bit loads and stores.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "depthbench/config.hpp"

namespace depthbench {

template <class R, int W> struct Simd {
  using real = R;
  static constexpr int width = W;
#if DB_DEVICE_PASS  // nvcc's device pass rejects vector types in templates it never runs: declarations suffice there
  struct V {
    V operator+(V) const; V operator-(V) const; V operator*(V) const; V operator/(V) const;
    R operator[](int) const; R& operator[](int);
  };
  static V all(R);
#else
  typedef R V __attribute__((vector_size(W * sizeof(R))));
  static DB_HOST_FN V all(R a) { return V{} + a; }
#endif
  V x;
  static DB_HOST_FN Simd splat(R a) { return {all(a)}; }
  friend DB_HOST_FN Simd operator+(Simd a, Simd b) { return {a.x + b.x}; }
  friend DB_HOST_FN Simd operator-(Simd a, Simd b) { return {a.x - b.x}; }
  friend DB_HOST_FN Simd operator*(Simd a, Simd b) { return {a.x * b.x}; }
  friend DB_HOST_FN Simd operator/(Simd a, Simd b) { return {a.x / b.x}; }
  DB_HOST_FN R get(int i) const { return x[i]; }
  DB_HOST_FN void set(int i, R a) { x[i] = a; }
};

template <class R, int W> struct alignas(W * sizeof(R) > 16 ? 16 : W * sizeof(R)) Lane {
  using real = R;
  static constexpr int width = W;
  R x[W];
  static DB_FN Lane splat(R a) { Lane p; DB_UNROLL for (int i = 0; i < W; ++i) p.x[i] = a; return p; }
  friend DB_FN Lane operator+(Lane a, Lane b) { DB_UNROLL for (int i = 0; i < W; ++i) a.x[i] += b.x[i]; return a; }
  friend DB_FN Lane operator-(Lane a, Lane b) { DB_UNROLL for (int i = 0; i < W; ++i) a.x[i] -= b.x[i]; return a; }
  friend DB_FN Lane operator*(Lane a, Lane b) { DB_UNROLL for (int i = 0; i < W; ++i) a.x[i] *= b.x[i]; return a; }
  friend DB_FN Lane operator/(Lane a, Lane b) { DB_UNROLL for (int i = 0; i < W; ++i) a.x[i] /= b.x[i]; return a; }
  DB_FN R get(int i) const { return x[i]; }
  DB_FN void set(int i, R a) { x[i] = a; }
};

#if defined(__AVX512F__)
inline constexpr int cpu_vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int cpu_vector_bytes = 32;
#else
inline constexpr int cpu_vector_bytes = 16;
#endif
template <class R> using cpu_pack = Simd<R, cpu_vector_bytes / int(sizeof(R))>;

// W elements as the memory system moves them: 16 bytes aligned, so that a GPU uses 128-bit accesses.
template <class T, int W> struct alignas(W * sizeof(T) > 16 ? 16 : W * sizeof(T)) Raw { T x[W]; };

namespace detail {  // the end of a row; out of line, or every load would carry a loop along
template <class P, class T> __attribute__((noinline)) P load_part(const T* p, int left) {
  P r = P::splat(0);
  for (int i = 0; i < left; ++i) r.set(i, typename P::real(p[i]));
  return r;
}
template <class P, class T> __attribute__((noinline)) void store_part(T* p, P r, int left) {
  for (int i = 0; i < left; ++i) p[i] = T(r.get(i));
}
}  // namespace detail

// Storage type T (float, double, bfloat16) -> pack. `left`: channels that exist at p; the rest are zero.
template <class P, class T> DB_FN P load_pack(const T* p, int left) {
  using R = typename P::real;
  P r = P::splat(R(0));
  if (left >= P::width) {
#if DB_DEVICE_PASS
    const auto raw = *reinterpret_cast<const Raw<T, P::width>*>(p);
    DB_UNROLL for (int i = 0; i < P::width; ++i) r.set(i, R(raw.x[i]));
#else
    if constexpr (std::is_same_v<T, R>) std::memcpy(&r.x, p, sizeof r.x);
    else for (int i = 0; i < P::width; ++i) r.set(i, R(p[i]));
#endif
  } else if constexpr (!DB_DEVICE_PASS) {  // the CUDA launcher takes only widths that are whole packs
    r = detail::load_part<P>(p, left);
  }
  return r;
}

template <class P, class T> DB_FN void store_pack(T* p, P r, int left) {
  if (left >= P::width) {
#if DB_DEVICE_PASS
    Raw<T, P::width> raw;
    DB_UNROLL for (int i = 0; i < P::width; ++i) raw.x[i] = T(r.get(i));
    *reinterpret_cast<Raw<T, P::width>*>(p) = raw;
#else
    if constexpr (std::is_same_v<T, typename P::real>) std::memcpy(p, &r.x, sizeof r.x);
    else for (int i = 0; i < P::width; ++i) p[i] = T(r.get(i));
#endif
  } else if constexpr (!DB_DEVICE_PASS) {
    detail::store_part(p, r, left);
  }
}

}  // namespace depthbench
