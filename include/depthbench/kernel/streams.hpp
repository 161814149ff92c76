// n streams side by side, stream-major: row t holds stream 0's d channels, then stream 1's, ...
#pragma once
#include <cstdint>

#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// y (N, n d) (+)= c * x in every stream
template <class Device, class R>
void streams_repeat(Device& device, const R* x, R* y, std::int64_t rows, int n, std::int64_t d, R c, bool add) {
  device.template for_tiles<R>(int(rows), 16, int(d), [=](auto& team, int first, int last) {
    using P = typename std::remove_cvref_t<decltype(team)>::Pack;
    for (std::int64_t t = first; t < last; ++t) for (int i = team.begin(); i < d; i += team.step()) {
      const int left = int(d) - i;
      const P v = P::splat(c) * load_pack<P>(x + t * d + i, left);
      for (int s = 0; s < n; ++s) {
        R* at = y + (t * n + s) * d + i;
        store_pack(at, add ? v + load_pack<P>(at, left) : v, left);
      }
    }
  });
}

// y (N, d) (+)= c * sum of the streams of x
template <class Device, class R>
void streams_sum(Device& device, const R* x, R* y, std::int64_t rows, int n, std::int64_t d, R c, bool add) {
  device.template for_tiles<R>(int(rows), 16, int(d), [=](auto& team, int first, int last) {
    using P = typename std::remove_cvref_t<decltype(team)>::Pack;
    for (std::int64_t t = first; t < last; ++t) for (int i = team.begin(); i < d; i += team.step()) {
      const int left = int(d) - i;
      P v = P::splat(0);
      for (int s = 0; s < n; ++s) v = v + load_pack<P>(x + (t * n + s) * d + i, left);
      v = P::splat(c) * v;
      if (add) v = v + load_pack<P>(y + t * d + i, left);
      store_pack(y + t * d + i, v, left);
    }
  });
}

}  // namespace depthbench
