// AdamW (Loshchilov & Hutter 2019, alg. 2), decay as p *= 1 - lr wd, over any run of parameters.
#pragma once
#include <cmath>
#include <cstddef>

#include "depthbench/config.hpp"
#include "depthbench/core/dtype.hpp"
#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// What is kept of a number after every operation: all of it, or what bfloat16 holds (round to nearest even).
struct KeepAll {
  template <class R> static DB_FN R of(R x) { return x; }
};
struct KeepBf16 {
  template <class R> static DB_FN R of(R x) { return R(float(bfloat16(float(x)))); }
};

// What changes from step to step. It stands in the device's memory, so that the same launches serve every step.
template <class R> struct AdamwSchedule {
  R lr, lr_decay;  // lr_decay: lr * weight decay
  R bias1, bias2;  // 1 - beta^step
};

template <class R> struct AdamwStep {
  R beta1, beta2, eps;
  static constexpr int flops = 16;  // of one number; those of plain numbers (1 - beta1, lr / bias1) not counted
  // One number: p, m, v change; g is read. Vectorised by the compiler where -fno-math-errno lets it (std::sqrt must not
  // set errno). With KeepBf16 the operations, and so the roundings, are those of PyTorch's AdamW on bfloat16 tensors.
  template <class Keep> DB_FN void at(const AdamwSchedule<R>& now, R grad_scale, R decay, R& p, R& m, R& v, R g) const {
    g = Keep::of(g * grad_scale);
    p = Keep::of(p * (R(1) - decay));
    m = Keep::of(beta1 * m + (R(1) - beta1) * g);
    v = Keep::of(Keep::of(beta2 * v) + (R(1) - beta2) * g * g);
    const R denominator = Keep::of(Keep::of(Keep::of(std::sqrt(v)) / std::sqrt(now.bias2)) + eps);
    p = Keep::of(p - now.lr / now.bias1 * m / denominator);
  }
};

// A run of parameters that are treated alike, clipped by the norm that stands in the device's memory: *norm need not be
// known to the host. One that is not finite changes nothing.
template <class R, class Keep> struct AdamwRun {
  AdamwStep<R> step;
  const AdamwSchedule<R>* schedule;
  bool decays;
  double clip;  // 0: none
  const double* norm;
  R *p, *m, *v;
  const R* g;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    const double size = *norm;
    if (!(size - size == 0)) return;
    const AdamwStep<R> body = step;
    const AdamwSchedule<R> now = *schedule;
    const R grad_scale = R(clip > 0 && clip < size + 1e-6 ? clip / (size + 1e-6) : 1.0), decay = decays ? now.lr_decay : R(0);
    R *__restrict pp = p + first, *__restrict mm = m + first, *__restrict vv = v + first;
    const R* __restrict gg = g + first;
    for (std::size_t i = 0; i < count; ++i) body.template at<Keep>(now, grad_scale, decay, pp[i], mm[i], vv[i], gg[i]);
  }
};
template <class R> struct RoundToBf16 {
  R* p;
  DB_FN void operator()(std::size_t first, std::size_t count) const {
    for (std::size_t i = first; i < first + count; ++i) p[i] = KeepBf16::of(p[i]);
  }
};

// The L2 norm of n numbers: part[k] = sum of the squares of chunk k (a team's work), then the root of their sum.
template <class R> struct SquaresOfChunks {
  static constexpr int simt_width = 1;
  static constexpr int chunk = 1 << 15;
  const R* g;
  std::int64_t n;
  double* part;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    for (std::int64_t k = first; k < last; ++k) {
      const int count = int(n - k * chunk < chunk ? n - k * chunk : chunk);
      auto acc = Team::acc0();
      for (int i = team.begin(); i < count; i += team.step()) {
        const P x = load_pack<P>(g + k * chunk + i, count - i);
        Team::fma(acc, x, x);
      }
      double sums[1] = {Team::hsum(acc)}, sum[1];
      team.sum(sums, sum);
      const double total = team.lanes().get(sum, 0);
      if (team.leader()) part[k] = total;
    }
  }
};
struct SquareRoot {
  DB_FN double operator()(double x) const { return std::sqrt(x); }
};

}  // namespace depthbench
