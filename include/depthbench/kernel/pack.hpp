// A pack: W neighbouring channels, moved and computed on at once.
//   Simd<R, W>   one CPU vector register, through the vector extension of GCC and clang. (An array in a struct is
//                10 to 60 times slower under g++ 12.)
//   Lane<R, W>   the channels of one GPU thread: an array in registers, moved by 128-bit loads and stores.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

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
  static DB_HOST_FN V all(R a) { return a - V{}; }  // minus: x - 0 is x, while -0 + 0 is not -0 and costs an addition
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
#if DB_DEVICE_PASS
template <class T, int W> DB_FN void put_raw(T* p, const Raw<T, W>& raw) {  // plain stores of a struct came out as four of 32 bits in places
  if constexpr (sizeof raw == 16) {
    uint4 bits;
    memcpy(&bits, &raw, sizeof bits);
    __stwb(reinterpret_cast<uint4*>(p), bits);
  } else {
    *reinterpret_cast<Raw<T, W>*>(p) = raw;
  }
}
#endif

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
    put_raw(p, raw);
#else
    if constexpr (std::is_same_v<T, typename P::real>) std::memcpy(p, &r.x, sizeof r.x);
    else for (int i = 0; i < P::width; ++i) p[i] = T(r.get(i));
#endif
  } else if constexpr (!DB_DEVICE_PASS) {
    detail::store_part(p, r, left);
  }
}

// The sums of the lanes of K registers. A whole register's worth at a time: neighbours are folded into each other, so
// that W sums cost 3 (W - 1) instructions instead of W times a ladder of shuffles.
#if !defined(__CUDACC__)
namespace detail {
// a and b hold W / B partial sums of B lanes each; the result holds those of both, of B / 2 lanes each.
template <int B, class R, int W, int... I> DB_HOST_FN Simd<R, W> fold_pair(Simd<R, W> a, Simd<R, W> b, std::integer_sequence<int, I...>) {
  constexpr int H = B / 2, parts = W / B;
  const auto low = __builtin_shufflevector(a.x, b.x, (I / H < parts ? I / H * B + I % H : W + (I / H - parts) * B + I % H)...);
  const auto high = __builtin_shufflevector(a.x, b.x, (I / H < parts ? I / H * B + I % H + H : W + (I / H - parts) * B + I % H + H)...);
  return {low + high};
}
template <int B, int N, class R, int W> DB_HOST_FN void fold_all(Simd<R, W> (&a)[N]) {
  if constexpr (B > 1) {
    Simd<R, W> half[N / 2];
    DB_UNROLL for (int i = 0; i < N / 2; ++i) half[i] = fold_pair<B>(a[2 * i], a[2 * i + 1], std::make_integer_sequence<int, W>{});
    fold_all<B / 2>(half);
    a[0] = half[0];
  }
}
}  // namespace detail
template <int K, class R, int W> DB_HOST_FN void lane_sums(const Simd<R, W> (&a)[K], R (&out)[K]) {
  DB_UNROLL for (int first = 0; first < K; first += W) {
    Simd<R, W> group[W];
    DB_UNROLL for (int i = 0; i < W; ++i) group[i] = first + i < K ? a[first + i < K ? first + i : 0] : Simd<R, W>::splat(0);
    detail::fold_all<W>(group);
    store_pack(out + first, group[0], K - first);
  }
}
#else
template <int K, class R, int W> DB_HOST_FN void lane_sums(const Simd<R, W> (&a)[K], R (&out)[K]) {
  for (int k = 0; k < K; ++k) {
    out[k] = 0;
    for (int i = 0; i < W; ++i) out[k] += a[k].get(i);
  }
}
#endif

}  // namespace depthbench
