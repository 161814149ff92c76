// One sum over many numbers, and what is made of it: the loss, a norm.
#pragma once
#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// out = f(sum of the d numbers x), in double and in one fixed order: one tile of one team.
template <class T, class R, class F> struct SumOf {
  static constexpr int simt_width = 1;
  const T* x;
  R* out;
  F f;
  template <class Team> DB_FN void operator()(Team& team, int, int) const {
    using P = typename Team::Pack;
    auto acc = Team::acc0();
    const P one = P::splat(1);
    for (int i = team.begin(); i < team.d; i += team.step()) Team::fma(acc, load_pack<P>(x + i, team.d - i), one);
    typename Team::real part[1] = {Team::hsum(acc)}, sum[1];
    team.sum(part, sum);
    const auto total = team.lanes().get(sum, 0);
    if (team.leader()) *out = R(f(total));
  }
};
struct DividedBy {
  double by;
  DB_FN double operator()(double x) const { return x / by; }
};

}  // namespace depthbench
