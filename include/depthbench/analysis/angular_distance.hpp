// How far two depth states point apart.                                  Gromov et al. 2024, arXiv 2403.17887, eq. 7; all tokens here
//
//   d(i, j) = mean over tokens of arccos(cos(z_i, z_j)) / pi        0 the same direction, 0.5 orthogonal
//
//   i < j of the L + 1 states; with streams z is the vector of all of them. Undefined below the diagonal.
//   cost: one forward pass, and L^2 / 2 products of states; holds the L + 1 states of a batch.
#pragma once
#include <numbers>

#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/states.hpp"

namespace depthbench {

template <class Device, class R>
Estimates angular_distance(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers, T = sample.seq;
  Estimates d(L + 1, L + 1);
  o.batches(sample, [&](int first, int count) {
    std::vector<HostState<R>> z;
    without_trace(tape, [&] {
      auto pass = model.begin(tape, sample.tokens_of(first, count), count);
      for (; !pass.done(); pass.step()) z.push_back(host_state(pass.state()));
      z.push_back(host_state(pass.state()));
    });
    const std::size_t n = z[0].rows();
    std::vector<double> length(std::size_t(L + 1) * n), angle(std::size_t(L + 1) * std::size_t(L + 1) * std::size_t(count));
    on_host(tape, L + 1, [&](int l) {
      for (std::size_t t = 0; t < n; ++t) length[std::size_t(l) * n + t] = std::sqrt(dot(z[l].row(t), z[l].row(t), z[l].width));
    });
    on_host(tape, (L + 1) * (L + 1), [&](int cell) {
      const int i = cell / (L + 1), j = cell % (L + 1);
      if (i >= j) return;
      for (int w = 0; w < count; ++w) {
        double sum = 0;
        for (std::size_t t = std::size_t(w) * std::size_t(T), end = t + std::size_t(T); t < end; ++t) {
          const double lengths = length[std::size_t(i) * n + t] * length[std::size_t(j) * n + t];
          const double cosine = dot(z[i].row(t), z[j].row(t), z[i].width) / std::max(lengths, std::numeric_limits<double>::min());
          sum += std::acos(std::clamp(cosine, -1.0, 1.0)) / std::numbers::pi;
        }
        angle[std::size_t(cell) * std::size_t(count) + std::size_t(w)] = sum / T;
      }
    });
    for (int i = 0; i <= L; ++i) for (int j = i + 1; j <= L; ++j) for (int w = 0; w < count; ++w)
      d(i, j).add(angle[std::size_t(i * (L + 1) + j) * std::size_t(count) + std::size_t(w)]);
    tape.clear();
    o.report(first + count, sample.windows());
  });
  return d;
}

}  // namespace depthbench
