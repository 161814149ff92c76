// Are an op's gradients right? Compares <v, dL> with central differences of L along random directions v.
//   const GradCheck c = gradcheck(tape, parameters, [&] { return loss(tape); });
//   c.worst < 1e-7 in double;   c.parameter names the worst one
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>

#include "depthbench/tape/tape.hpp"

namespace depthbench {

struct GradCheck {
  double worst = 0;       // largest error of a directional derivative, relative to the gradient's norm
  std::string parameter;  // whose it is
};

// loss: builds the scalar on the tape. directions: random directions a parameter; step: relative to its values' size.
// Parameters without any gradient are compared with zero.
template <class Device, class R>
GradCheck gradcheck(Tape<Device, R>& tape, Parameters<Device, R>& parameters, const std::function<Var<Device, R>()>& loss,
                    int directions = 3, double step = 1e-5, std::uint64_t seed = 1) {
  parameters.clear_grads();
  tape.backward(loss());
  parameters.settle_grads();
  std::vector<std::vector<R>> grads;
  for (const auto& p : parameters.list()) grads.emplace_back(p.grads().begin(), p.grads().end());
  parameters.clear_grads();

  GradCheck result;
  const auto value = [&] {
    double v = 0;
    tape.no_grad([&] {
      v = double(*loss().value());
      return std::vector<Var<Device, R>>{};
    });
    tape.clear();
    return v;
  };
  std::size_t index = 0;
  for (auto& p : parameters.list()) {
    const auto& g = grads[index++];
    const std::vector<R> kept(p.values().begin(), p.values().end());
    double norm = 0;
    for (const R x : g) norm += double(x) * double(x);
    for (int d = 0; d < directions; ++d) {
      const Rng rng(seed, index * 1000 + std::uint64_t(d));
      double along = 0, length = 0;
      std::vector<double> v(kept.size());
      for (std::size_t i = 0; i < v.size(); ++i) {
        v[i] = rng.normal(i);
        length += v[i] * v[i];
      }
      for (std::size_t i = 0; i < v.size(); ++i) {
        v[i] /= std::sqrt(length);
        along += v[i] * double(g[i]);
      }
      double side[2];
      for (const int s : {0, 1}) {
        for (std::size_t i = 0; i < v.size(); ++i) p.value[i] = kept[i] + R((s == 0 ? step : -step) * v[i]);
        side[s] = value();
      }
      std::copy(kept.begin(), kept.end(), p.value);
      const double error = std::fabs((side[0] - side[1]) / (2 * step) - along) / std::max(std::sqrt(norm), 1e-3);
      if (!std::isnan(result.worst) && !(error <= result.worst)) result = {error, p.name};  // NaN is the worst, and stays
    }
  }
  return result;
}

}  // namespace depthbench
