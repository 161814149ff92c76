// Softmax cross-entropy of rows of logits:   nll = log sum_v e^{z_v} - z_target
#pragma once
#include <cstdint>

#include "depthbench/core/label.hpp"
#include "depthbench/kernel/pack_math.hpp"

namespace depthbench {

// One row of V logits. With Gradient, z becomes c (softmax(z) - onehot(target)); of an ignored target, zero.
template <bool gradient, class Team, class R>
DB_FN R cross_entropy_row(Team& team, R* z, int V, std::int32_t target, R c) {
  using P = typename Team::Pack;
  if (target == ignored_target) {
    if constexpr (gradient) for (int v = team.begin(); v < V; v += team.step()) store_pack(z + v, P::splat(0), V - v);
    return R(0);
  }
  const R at_target = z[target];
  R top = at_target;
  for (int v = team.begin(); v < V; v += team.step()) {
    const int left = V - v;
    if (left >= P::width) top = math::max(top, Team::hmax(load_pack<P>(z + v, left)));
    else for (int i = 0; i < left; ++i) top = math::max(top, R(z[v + i]));
  }
  top = team.max(top);
  auto acc = Team::acc0();
  const P t = P::splat(top), one = P::splat(1);
  for (int v = team.begin(); v < V; v += team.step()) {
    const int left = V - v;
    P e = math::exp(load_pack<P>(z + v, left) - t);
    for (int i = left; i < P::width; ++i) e.set(i, R(0));
    Team::fma(acc, e, one);
    if constexpr (gradient) store_pack(z + v, e, left);
  }
  R part[1] = {Team::hsum(acc)}, sum[1];
  team.sum(part, sum);
  const R total = team.lanes().get(sum, 0);
  if constexpr (gradient) {
    const P s = P::splat(c * math::reciprocal(total));
    for (int v = team.begin(); v < V; v += team.step()) {
      P e = load_pack<P>(z + v, V - v) * s;
      const int here = target - v;
      if (here >= 0 && here < P::width) e.set(here, e.get(here) - c);
      store_pack(z + v, e, V - v);
    }
  }
  return top + math::log(total) - at_target;
}

// nll of rows of logits; with `gradient` the rows become their own gradients, times c.
template <bool gradient, class R> struct CrossEntropyRows {
  static constexpr int simt_width = 1;  // a row of V numbers begins anywhere
  R* logits;
  int vocab;
  const std::int32_t* target;
  R* nll;
  R c;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    for (int i = first; i < last; ++i) {
      const R x = cross_entropy_row<gradient>(team, logits + std::int64_t(i) * vocab, vocab, target[i], c);
      if (team.leader()) nll[i] = x;
    }
  }
};

}  // namespace depthbench
