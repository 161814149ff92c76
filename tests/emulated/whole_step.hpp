// Everything that one training step of a model computes, on any device: for comparing two of them.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "depthbench/model/transformer.hpp"
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/adamw.hpp"

namespace depthbench_test {

struct StepCase {
  depthbench::ModelConfig model;
  int batch, seq;
  depthbench::Activations activations = depthbench::Activations::keep;
};

struct WholeStep {
  std::vector<double> loss, gradients, parameters;  // gradients: all of them, and their norm; parameters: after the step
};

// From parameters that are alive everywhere: no zero and no symmetry of the initial values is left.
template <class R, class Device>
WholeStep whole_step(Device& device, const StepCase& c, const std::string& design, const depthbench::DesignOptions& options = {}) {
  using namespace depthbench;
  Transformer<Device, R> model(device, c.model, Designs<Device, R>().make(design, options));
  model.initialize(3);
  const auto host = [&device](const R* p, std::int64_t n) {
    std::vector<R> v(static_cast<std::size_t>(n));
    device.download(v.data(), p, v.size());
    return v;
  };
  const Rng rng(1, 2);
  for (auto& p : model.parameters().list()) {
    auto v = host(p.value, p.numel());
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = R(v[i] + 0.3 * rng.normal(p.offset + i));
    device.upload(p.value, v.data(), v.size());
  }
  std::vector<std::int32_t> tokens(std::size_t(c.batch * c.seq)), targets(tokens.size());
  const auto vocab = std::size_t(c.model.vocab_size);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = std::int32_t(i * i % vocab);
    targets[i] = i % 7 == 3 ? ignored_target : std::int32_t(i * 5 % vocab);
  }

  WholeStep all;
  const auto append = [&](std::vector<double>& list, const R* p, std::int64_t n) {
    const auto v = host(p, n);
    list.insert(list.end(), v.begin(), v.end());
  };
  Tape<Device, R> tape(device);
  const auto loss = model.loss(tape, tokens, targets, c.batch, 50, c.activations);
  append(all.loss, loss.value(), 1);
  tape.backward(loss);
  model.parameters().settle_grads();
  for (const auto& p : model.parameters().list()) append(all.gradients, p.grad, p.numel());
  Adamw<Device, R> adamw(model.parameters(), {});
  all.gradients.push_back(adamw.step(1e-2));
  for (const auto& p : model.parameters().list()) append(all.parameters, p.value, p.numel());
  return all;
}

// The largest difference, relative to the largest number needed; NaN is infinite.
inline double relative_error(const std::vector<double>& has, const std::vector<double>& needs) {
  if (has.size() != needs.size()) return INFINITY;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const double e = std::fabs(has[i] - needs[i]);
    if (!(e <= error)) error = std::isnan(e) ? INFINITY : e;
    largest = std::max(largest, std::fabs(needs[i]));
  }
  return error / (largest > 0 ? largest : 1);
}
inline double relative_error(const WholeStep& has, const WholeStep& needs) {
  return std::max({relative_error(has.loss, needs.loss), relative_error(has.gradients, needs.gradients),
                   relative_error(has.parameters, needs.parameters)});
}

}  // namespace depthbench_test
