// The loss of a model, window by window: what the analyses that take blocks away or exchange them compare.
#pragma once
#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/states.hpp"

namespace depthbench {

struct WindowLoss {
  std::vector<double> sum, labels;  // one a window
  double mean() const {
    double s = 0, n = 0;
    for (std::size_t w = 0; w < sum.size(); ++w) {
      s += sum[w];
      n += labels[w];
    }
    return s / n;
  }
  void append(const WindowLoss& other) {
    sum.insert(sum.end(), other.sum.begin(), other.sum.end());
    labels.insert(labels.end(), other.labels.begin(), other.labels.end());
  }
};

// Of `count` windows from `first` on, given the head's normed input h (count T, d).
template <class Device, class R>
WindowLoss window_loss(Transformer<Device, R>& model, Var<Device, R> h, const Sample& sample, int first, int count) {
  const auto targets = sample.targets_of(first, count);
  std::vector<R> nll(targets.size());
  model.head_loss(h, targets, 1.0, nll.data());
  WindowLoss loss{std::vector<double>(std::size_t(count)), std::vector<double>(std::size_t(count))};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == ignored_target) continue;
    loss.sum[i / std::size_t(sample.seq)] += double(nll[i]);
    loss.labels[i / std::size_t(sample.seq)] += 1;
  }
  return loss;
}
template <class Device, class R>
WindowLoss window_loss(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o) {
  WindowLoss all;
  o.batches(sample, [&](int first, int count) {
    without_trace(tape, [&] {
      auto pass = model.begin(tape, sample.tokens_of(first, count), count);
      while (!pass.done()) pass.step();
      all.append(window_loss(model, pass.finish(), sample, first, count));
    });
    tape.clear();
  });
  return all;
}

// changed - base per label, with the interval that paired windows give.
inline Estimate difference(const WindowLoss& changed, const WindowLoss& base) {
  Estimate e;
  for (std::size_t w = 0; w < base.sum.size(); ++w)
    if (base.labels[w] > 0) e.add((changed.sum[w] - base.sum[w]) / base.labels[w], base.labels[w]);
  return e;
}

}  // namespace depthbench
