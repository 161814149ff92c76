// What a model on any device makes of a golden case, and how far that may be from it.
#pragma once
#include <map>

#include "depthbench/testing/bench.hpp"
#include "tests/model/golden_case.hpp"

namespace depthbench_test {

struct GoldenResult {
  std::vector<double> logits, loss;                    // loss: before each of three steps
  std::map<std::string, std::vector<double>> gradient;  // of the first
};

template <class R, class Device> std::vector<double> on_host(Device& device, const R* p, std::int64_t n) {
  std::vector<R> v(static_cast<std::size_t>(n));
  device.download(v.data(), p, v.size());
  return {v.begin(), v.end()};
}

template <class R, class Device> GoldenResult golden_result(GoldenCase<R, Device>& c) {
  auto& device = c.model->parameters().device();
  depthbench::Tape<Device, R> tape(device);
  GoldenResult r;
  const auto logits = c.model->logits(tape, c.tokens, c.batch);
  r.logits = on_host(device, logits.value(), logits.numel());
  tape.clear();
  depthbench::Adamw<Device, R> adamw(c.model->parameters(), c.adamw);
  for (int step = 0; step < 3; ++step) {
    const auto loss = c.loss(tape);
    r.loss.push_back(on_host(device, loss.value(), 1)[0]);
    tape.backward(loss);
    if (step == 0) for (const auto& p : c.model->parameters().list()) r.gradient[p.name] = on_host(device, p.grad, p.numel());
    adamw.step(c.lr);
  }
  return r;
}

// The case itself.
template <class R, class Device> GoldenResult golden_needs(const GoldenCase<R, Device>& c) {
  GoldenResult r{c.needs("logits"), c.losses, {}};
  for (const auto& p : c.model->parameters().list()) if (!c.near_zero.contains(p.name)) r.gradient[p.name] = c.needs("grad." + p.name);
  return r;
}

// The worst of has against needs, each as a share of what it may be: above 1, something is wrong. Names it.
// floor: gradients are measured against their largest entry or this share of the model's largest, whichever is larger: below it is
// what is left where terms cancel by structure (alpha_pre of mHC's first sublayer, whose effect the norm behind it hides).
struct Allowed { double logits, loss; std::map<std::string, double> gradient; double floor = 0; };
struct Share { double value = 0; std::string what; };
inline Share worst_share(const GoldenResult& has, const GoldenResult& needs, const Allowed& allowed) {
  Share worst;
  const auto add = [&](const std::string& what, const std::vector<double>& a, const std::vector<double>& b, double limit) {
    const double share = depthbench::testing::error_of(a, b) / limit;
    if (!(share <= worst.value)) worst = {share, what};
  };
  add("logits", has.logits, needs.logits, allowed.logits);
  add("loss", has.loss, needs.loss, allowed.loss);
  const auto size = [](const std::vector<double>& g) {
    double x = 0;
    for (const double v : g) x = std::max(x, std::fabs(v));
    return x;
  };
  double largest = 0;
  for (const auto& [name, g] : needs.gradient) largest = std::max(largest, size(g));
  for (const auto& [name, g] : needs.gradient) {
    const double own = size(g), against = std::max(own, allowed.floor * largest);
    add("gradient of " + name, has.gradient.at(name), g, allowed.gradient.at(name) * (own > 0 ? against / own : 1));
  }
  return worst;
}

// In float64: the golden README, section 6.
inline Allowed allowed_float64(const GoldenText& c, const GoldenResult& needs) {
  Allowed a{1e-10, 1e-9, {}};
  for (const auto& [name, g] : needs.gradient) a.gradient[name] = c.compact ? 2e-7 : 1e-9;
  return a;
}

// In arithmetic of unit roundoff u, r roundings a stage of the model. Each rounding changes what comes after it as a relative
// change by u of a weight does. Changes are random and independent (Higham & Mary 2019), so r of them in a stage act like one of
// size sqrt(r) u, and 4 standard deviations of that are allowed. What such a change of every weight does to the results is
// measured, in float64, with changes of 2^-20: three times, the largest counts; 1 is for the rounding of the result itself.
//   float      u = 2^-24, r = width of the widest sum + 4 (norm, gain, residual)
//   bf16       u = 2^-8,  r = 2: both inputs of a product; sums are float. On a GPU attention is two products: r = 4
struct Arithmetic { double u, roundings; };
inline Arithmetic in_float(const depthbench::ModelConfig& m) { return {0x1p-24, double(std::max(4 * m.d_model, m.ffn_hidden)) + 4}; }
inline Arithmetic in_bf16(bool attention = false) { return {0x1p-8, attention ? 4.0 : 2.0}; }

using Sensitivity = Allowed;  // relative change of each result, of a relative change of 1 of every weight
inline Sensitivity sensitivity(const std::string& name) {
  depthbench::Cpu cpu;
  GoldenCase<double> c(cpu, name);
  const GoldenResult exact = golden_result(c);
  Sensitivity s{0, 0, {}};
  for (int sample = 0; sample < 3; ++sample) {
    c.load();
    const depthbench::Rng rng(9, std::uint64_t(sample));
    for (auto& p : c.model->parameters().list())
      for (std::int64_t i = 0; i < p.numel(); ++i) p.value[i] *= 1 + 0x1p-20 * rng.normal(p.offset + std::uint64_t(i));
    const GoldenResult moved = golden_result(c);
    const auto add = [](double& to, const std::vector<double>& a, const std::vector<double>& b) {
      to = std::max(to, depthbench::testing::error_of(a, b) * 0x1p20);
    };
    add(s.logits, moved.logits, exact.logits);
    add(s.loss, moved.loss, exact.loss);
    for (const auto& [parameter, g] : exact.gradient) add(s.gradient[parameter], moved.gradient.at(parameter), g);
  }
  return s;
}
inline Allowed allowed_rounding(const Sensitivity& s, const Arithmetic& of) {
  const auto limit = [&](double change) { return 4 * std::sqrt(of.roundings) * of.u * (1 + change); };
  Allowed a{limit(s.logits), limit(s.loss), {}, 1e-4};
  for (const auto& [parameter, change] : s.gradient) a.gradient[parameter] = limit(change);
  return a;
}

}  // namespace depthbench_test
