// What the head makes of the states on the way.                                         nostalgebraist 2020
//
//   p_l = softmax(W_head N(r_l)),  r_l the design's read-out before block l, l = 0 .. L; the norm's statistics are those of r_l
//   early exit: -log p_l(next token)     KL(p_L || p_l)     overlap: |top 5 of p_l and of p_L| / 5     means over labelled positions
//
//   cost: one forward pass and L + 1 heads; holds two (T, V) arrays, a window at a time.
#pragma once
#include <array>

#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/states.hpp"

namespace depthbench {

struct LogitLens {
  Estimates early_exit, kl, overlap;  // (1, L + 1)
  explicit LogitLens(int layers) : early_exit(1, layers + 1), kl(1, layers + 1), overlap(1, layers + 1) {}
};

namespace detail {
inline constexpr int lens_top = 5;

// A row of logits, V numbers: log of the sum of exponentials, and the five largest.
struct LensRow {
  double lse = 0;
  std::array<int, lens_top> top;
  template <class R> LensRow(const R* z, int vocab) {
    double largest = double(z[0]), sum = 0;
    for (int v = 1; v < vocab; ++v) largest = std::max(largest, double(z[v]));
    for (int v = 0; v < vocab; ++v) sum += std::exp(double(z[v]) - largest);
    lse = largest + std::log(sum);
    top.fill(-1);  // for a vocabulary of fewer than five
    int kept = 0;
    for (int v = 0; v < vocab; ++v) {  // insertion into a list of five; of equals the smaller index wins
      if (kept == lens_top && !(z[v] > z[top[lens_top - 1]])) continue;
      int at = kept < lens_top ? kept++ : lens_top - 1;
      for (; at > 0 && z[v] > z[top[std::size_t(at - 1)]]; --at) top[std::size_t(at)] = top[std::size_t(at - 1)];
      top[std::size_t(at)] = v;
    }
  }
};
}  // namespace detail

template <class Device, class R>
LogitLens logit_lens(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers, T = sample.seq, V = model.config().vocab_size;
  LogitLens lens(L);
  for (int w = 0; w < sample.windows(); ++w) {
    const auto targets = sample.targets_of(w, 1);
    without_trace(tape, [&] {
      std::vector<Var<Device, R>> out;  // r_0 .. r_L
      auto pass = model.begin(tape, sample.tokens_of(w, 1), 1);
      for (; !pass.done(); pass.step()) out.push_back(pass.read_out());
      out.push_back(pass.read_out());
      const auto last_logits = tape.host(model.decode(out.back()));                                       // (T, V)
      std::vector<detail::LensRow> ends;
      for (int t = 0; t < T; ++t) ends.emplace_back(last_logits.data() + std::int64_t(t) * V, V);
      for (int l = 0; l <= L; ++l) {
        std::vector<R> z;
        without_trace(tape, [&] { z = tape.host(model.decode(out[std::size_t(l)])); });
        std::vector<std::array<double, 3>> each(std::size_t(T), std::array<double, 3>{});
        on_host(tape, T, [&](int t) {
          if (targets[std::size_t(t)] == ignored_target) return;
          const R *here = z.data() + std::int64_t(t) * V, *end = last_logits.data() + std::int64_t(t) * V;
          const detail::LensRow row(here, V), &last = ends[std::size_t(t)];
          double kl = 0;
          for (int v = 0; v < V; ++v) {
            const double log_p = double(end[v]) - last.lse;
            kl += std::exp(log_p) * (log_p - (double(here[v]) - row.lse));
          }
          int common = 0;
          for (const int a : row.top) for (const int b : last.top) common += a == b && a >= 0;
          each[std::size_t(t)] = {row.lse - double(here[targets[std::size_t(t)]]), kl, double(common) / detail::lens_top};
        });
        std::array<double, 3> sum{};
        double labels = 0;
        for (int t = 0; t < T; ++t) {
          if (targets[std::size_t(t)] == ignored_target) continue;
          ++labels;
          for (std::size_t i = 0; i < 3; ++i) sum[i] += each[std::size_t(t)][i];
        }
        if (labels == 0) continue;
        lens.early_exit(0, l).add(sum[0] / labels, labels);
        lens.kl(0, l).add(sum[1] / labels, labels);
        lens.overlap(0, l).add(sum[2] / labels, labels);
      }
    });
    tape.clear();
    o.report(w + 1, sample.windows());
  }
  return lens;
}

}  // namespace depthbench
