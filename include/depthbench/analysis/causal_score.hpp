// How much later blocks do otherwise when an earlier one is left out.
//
//   u_l = z_{l+1} - z_l        C(s, l) = mean over tokens of |u_l without s - u_l| / max(|u_l|, 1e-8),   l > s
//
//   Undefined for l <= s. What "left out" means is the design's: residual/interventions.hpp.
//   cost: (L + 1) / 2 forward passes; holds the L + 1 states of a batch.     source: DepthBench, compute_causal_score
#pragma once
#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/states.hpp"

namespace depthbench {

template <class Device, class R>
Estimates causal_score(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers, T = sample.seq;
  Estimates c(L, L);
  std::int64_t done = 0;
  o.batches(sample, [&](int first, int count) {
    // Adds the mean ratio of every window: block l was z -> next, and is now z_s -> next_s.
    const auto compare = [&](Estimate& cell, const HostState<R>& z, const HostState<R>& next, const HostState<R>& z_s, const HostState<R>& next_s) {
      const std::size_t n = z.rows(), width = z.width;
      std::vector<double> ratio(n);
      on_host(tape, int(n), [&](int t) {
        const R *a = z.row(t), *b = next.row(t), *p = z_s.row(t), *q = next_s.row(t);
        double change = 0, length = 0;
        for (std::size_t i = 0; i < width; ++i) {
          const double u = double(b[i]) - double(a[i]), other = double(q[i]) - double(p[i]);
          change += (other - u) * (other - u);
          length += u * u;
        }
        ratio[std::size_t(t)] = std::sqrt(change) / std::max(std::sqrt(length), 1e-8);
      });
      for (int w = 0; w < count; ++w) {
        double sum = 0;
        for (int t = 0; t < T; ++t) sum += ratio[std::size_t(w * T + t)];
        cell.add(sum / T);
      }
    };
    without_trace(tape, [&] {
      std::vector<HostState<R>> z;
      auto pass = model.begin(tape, sample.tokens_of(first, count), count);
      const auto at = passes_before_blocks(pass, [&](auto& p) { z.push_back(host_state(p.state())); });
      for (int s = 0; s < L; ++s) {
        without_trace(tape, [&] {
          auto other = at[std::size_t(s)];
          other.skip(o.first_run);
          HostState<R> before = host_state(other.state());
          for (int l = s + 1; l < L; ++l) {
            other.step();
            HostState<R> after = host_state(other.state());
            compare(c(s, l), z[std::size_t(l)], z[std::size_t(l) + 1], before, after);
            before = std::move(after);
          }
        });
        o.report(++done, o.batch_count(sample) * L);
      }
    });
    tape.clear();
  });
  return c;
}

}  // namespace depthbench
