// n streams side by side, stream-major: row t holds stream 0's d channels, then stream 1's, ...
#pragma once
#include <cstdint>

#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// y (N, n d) (+)= c * x in every stream
template <class R> struct StreamsRepeat {
  const R* x;
  R* y;
  int n;
  R c;
  bool add;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    for (std::int64_t t = first; t < last; ++t) for (int i = team.begin(); i < team.d; i += team.step()) {
      const int left = team.d - i;
      const P v = P::splat(c) * load_pack<P>(x + t * team.d + i, left);
      for (int s = 0; s < n; ++s) {
        R* at = y + (t * n + s) * team.d + i;
        store_pack(at, add ? v + load_pack<P>(at, left) : v, left);
      }
    }
  }
};

// y (N, d) (+)= c * sum of the streams of x
template <class R> struct StreamsSum {
  const R* x;
  R* y;
  int n;
  R c;
  bool add;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    for (std::int64_t t = first; t < last; ++t) for (int i = team.begin(); i < team.d; i += team.step()) {
      const int left = team.d - i;
      P v = P::splat(0);
      for (int s = 0; s < n; ++s) v = v + load_pack<P>(x + (t * n + s) * team.d + i, left);
      v = P::splat(c) * v;
      if (add) v = v + load_pack<P>(y + t * team.d + i, left);
      store_pack(y + t * team.d + i, v, left);
    }
  }
};

}  // namespace depthbench
