// How far each block is from the identity, seen by small changes of its input.   |J - I|_F / sqrt(d),  J (d, d)
//   Row c of J: the gradient of sum over positions of output channel c, averaged over positions and windows. Effects across
//   positions are thereby summed in.   One value a block. Only for designs of one stream; None for the others.
//   cost: d backward passes of every block, a batch.                            source: DepthBench, compute_jacobian_fast
#pragma once
#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/states.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/op/reshape.hpp"

namespace depthbench {

template <class Device, class R>
std::optional<std::vector<double>> jacobian_deviation(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers, d = model.config().d_model;
  constexpr int most = 1024;
  if (d > most) fail<config_error>("jacobian: d_model is {}, needs {} or less (each channel costs a backward pass of every block)", d, most);
  std::vector<std::vector<double>> j(std::size_t(L), std::vector<double>(std::size_t(d) * std::size_t(d)));
  bool possible = true;
  std::int64_t done = 0;
  const std::int64_t of = o.batch_count(sample) * L;
  o.batches(sample, [&](int first, int count) {
    const std::int64_t n = std::int64_t(count) * sample.seq;
    std::vector<R> dz(std::size_t(n * d)), pick(static_cast<std::size_t>(d)), ones(static_cast<std::size_t>(n), R(1));
    for (int l = 0; l < L && possible; ++l) {
      std::optional<ForwardPass<Device, R>> at;  // before block l
      {
        const auto paused = tape.pause();
        at.emplace(model.begin(tape, sample.tokens_of(first, count), count));
        while (at->block() < l) at->step();
      }
      const auto z = tape.host(at->state());
      possible = z.size() == dz.size();
      for (int c = 0; c < d && possible; ++c) {
        const auto mark = tape.mark();
        auto pass = *at;
        bool has_grad = false;
        possible = pass.replace(tape.leaf(z.data(), dz.data(), &has_grad, {n, d}));
        if (!possible) break;
        pass.step();
        std::fill(pick.begin(), pick.end(), R(0));
        pick[std::size_t(c)] = R(1);
        const auto channel = linear(pass.state(), tape.constant(pick.data(), {1, d}));                     // (N, 1)
        tape.backward_since(mark, linear(reshape(channel, {1, n}), tape.constant(ones.data(), {1, n})));   // their sum
        double* row = &j[std::size_t(l)][std::size_t(c) * std::size_t(d)];
        for (std::int64_t t = 0; t < n; ++t) for (int i = 0; i < d; ++i) row[i] += double(dz[std::size_t(t * d + i)]);
      }
      tape.clear();
      o.report(++done, of);
    }
  });
  model.parameters().clear_grads();
  if (!possible) return std::nullopt;
  std::vector<double> deviation;
  const double positions = double(sample.windows()) * sample.seq;
  for (const auto& sum : j) {
    double s = 0;
    for (int c = 0; c < d; ++c) for (int i = 0; i < d; ++i) {
      const double x = sum[std::size_t(c) * std::size_t(d) + std::size_t(i)] / positions - (c == i);
      s += x * x;
    }
    deviation.push_back(std::sqrt(s / d));
  }
  return deviation;
}

}  // namespace depthbench
