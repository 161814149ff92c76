// What the loss costs without one block.   delta(s) = loss without block s - loss        (positive: the block helps)
//   cost: (L + 1) / 2 forward passes, and L + 1 heads.                        source: DepthBench, compute_layer_pruning
#pragma once
#include "depthbench/analysis/window_loss.hpp"

namespace depthbench {

struct Pruning {
  WindowLoss base;
  std::vector<WindowLoss> without;  // one a block
  Estimates delta() const {         // (1, L)
    Estimates e(1, int(without.size()));
    for (std::size_t s = 0; s < without.size(); ++s) e(0, int(s)) = difference(without[s], base);
    return e;
  }
};

template <class Device, class R>
Pruning pruning(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers;
  Pruning p{{}, std::vector<WindowLoss>(std::size_t(L))};
  std::int64_t done = 0;
  o.batches(sample, [&](int first, int count) {
    without_trace(tape, [&] {
      auto pass = model.begin(tape, sample.tokens_of(first, count), count);
      const auto at = passes_before_blocks(pass, [](auto&) {});
      p.base.append(window_loss(model, pass.finish(), sample, first, count));
      for (int s = 0; s < L; ++s) {
        without_trace(tape, [&] {
          auto other = at[std::size_t(s)];
          other.skip(o.first_run);
          while (!other.done()) other.step();
          p.without[std::size_t(s)].append(window_loss(model, other.finish(), sample, first, count));
        });
        o.report(++done, o.batch_count(sample) * L);
      }
    });
    tape.clear();
  });
  return p;
}

}  // namespace depthbench
