// Whether the tokens of a window become alike with depth.   H (T, width): the state of a window, not centred; s its singular values
//   stable rank sum s^2 / max s^2      entropy rank exp(-sum p log p), p = s^2 / sum s^2      sparsity sum s / sqrt(sum s^2)
//   One value a state, l = 0 .. L, means over windows.   With streams H holds all of them.
//   cost: one forward pass and L + 1 singular value decompositions a window.        source: DepthBench, compute_token_collapse
#pragma once
#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/lapack.hpp"
#include "depthbench/analysis/singular_values.hpp"
#include "depthbench/analysis/states.hpp"

namespace depthbench {

struct TokenCollapse {
  Estimates stable_rank, entropy_rank, sparsity;  // (1, L + 1)
};

template <class Device, class R>
TokenCollapse token_collapse(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers, T = sample.seq;
  TokenCollapse c{{1, L + 1}, {1, L + 1}, {1, L + 1}};
  o.batches(sample, [&](int first, int count) {
    std::vector<HostState<R>> z;
    without_trace(tape, [&] {
      auto pass = model.begin(tape, sample.tokens_of(first, count), count);
      for (; !pass.done(); pass.step()) z.push_back(host_state(pass.state()));
      z.push_back(host_state(pass.state()));
    });
    tape.clear();
    std::vector<std::vector<double>> s(std::size_t((L + 1) * count));
    on_host(tape, (L + 1) * count, [&](int i) {
      const auto& state = z[std::size_t(i / count)];
      const R* begin = state.row(std::size_t(i % count) * std::size_t(T));
      s[std::size_t(i)] = lapack::singular_values({begin, begin + std::size_t(T) * state.width}, int(state.width), T);
    });
    for (int i = 0; i < (L + 1) * count; ++i) {
      const auto& values = s[std::size_t(i)];
      double sum = 0, squares = 0;
      for (const double x : values) {
        sum += x;
        squares += x * x;
      }
      c.stable_rank(0, i / count).add(stable_rank(values));
      c.entropy_rank(0, i / count).add(effective_rank(values));
      c.sparsity(0, i / count).add(sum / std::sqrt(squares));
    }
    o.report(first + count, sample.windows());
  });
  return c;
}

}  // namespace depthbench
