// What the order of two blocks is worth.   P(i, j) = |loss with i and j exchanged - loss| / loss,   i < j
//   What is exchanged is the design's (Residual::swap); afterwards the model is as before, bit for bit.
//   cost: L (L - 1) / 2 + 1 forward passes.                                 source: DepthBench, compute_permutation_score
#pragma once
#include "depthbench/analysis/window_loss.hpp"

namespace depthbench {

struct Permutation {
  int layers = 0;
  WindowLoss base;
  std::vector<WindowLoss> swapped;  // pair (i, j), i < j, at i L + j
  double loss(int i, int j) const { return swapped[std::size_t(i * layers + j)].mean(); }
  double score(int i, int j) const { return std::fabs(loss(i, j) - base.mean()) / base.mean(); }
  double half_width(int i, int j) const { return difference(swapped[std::size_t(i * layers + j)], base).half_width() / base.mean(); }
};

template <class Device, class R>
Permutation permutation_score(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers;
  Permutation p{L, window_loss(model, tape, sample, o), std::vector<WindowLoss>(std::size_t(L) * std::size_t(L))};
  struct Exchanged {  // restores, whatever happens meanwhile
    Transformer<Device, R>& model;
    int i, j;
    Exchanged(Transformer<Device, R>& m, int i_, int j_) : model(m), i(i_), j(j_) { model.swap(i, j); }
    ~Exchanged() { model.swap(i, j); }
  };
  std::int64_t done = 0;
  for (int i = 0; i < L; ++i) for (int j = i + 1; j < L; ++j) {
    {
      const Exchanged exchanged(model, i, j);
      p.swapped[std::size_t(i * L + j)] = window_loss(model, tape, sample, o);
    }
    o.report(++done, std::int64_t(L) * (L - 1) / 2);
  }
  return p;
}

}  // namespace depthbench
