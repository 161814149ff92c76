// The optimizer against its formula, number by number.
#include "depthbench/train/adamw.hpp"

#include "depthbench/backend/cpu.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

struct Reference {  // of one parameter
  std::vector<double> p, m, v;
  Decay decay;
};

// Parameters of alternating decay, one longer than a chunk, with padding between them.
struct Setup {
  Cpu cpu{2};
  Parameters<Cpu, double> parameters{cpu};
  std::vector<Reference> reference;
  Setup() {
    const auto add = [&](const char* name, Shape s, Decay decay) {
      parameters.declare(name, s, Init::truncated_normal(1), decay);
    };
    add("a", {3}, Decay::yes);
    add("b", {5}, Decay::no);
    add("c", {}, Decay::no);
    add("d", {7, 9}, Decay::yes);
    add("e", {200, 200}, Decay::yes);
    add("f", {2}, Decay::no);
    parameters.allocate(1);
    for (auto& p : parameters.list())
      reference.push_back({{p.values().begin(), p.values().end()},
                           std::vector<double>(p.values().size()),
                           std::vector<double>(p.values().size()),
                           p.decay});
  }
  void gradients(int step, double scale) {
    std::uint64_t seed = std::uint64_t(step) * 100;
    for (auto& p : parameters.list()) {
      const auto g = random_numbers(std::size_t(p.numel()), ++seed, scale);
      std::copy(g.begin(), g.end(), p.grad);
      p.has_grad = true;
    }
  }
  double norm() const {
    double s = 0;
    for (const auto& p : parameters.list()) for (const double g : p.grads()) s += g * g;
    return std::sqrt(s);
  }
  void reference_step(int step, double lr, const AdamwConfig& c) {
    const double clip = c.clip > 0 ? std::min(1.0, c.clip / (norm() + 1e-6)) : 1;
    std::size_t i = 0;
    for (const auto& p : parameters.list()) {
      auto& r = reference[i++];
      for (std::size_t k = 0; k < r.p.size(); ++k) {
        const double g = p.grads()[k] * clip;
        r.m[k] = c.beta1 * r.m[k] + (1 - c.beta1) * g;
        r.v[k] = c.beta2 * r.v[k] + (1 - c.beta2) * g * g;
        if (r.decay == Decay::yes) r.p[k] *= 1 - lr * c.weight_decay;
        r.p[k] -= lr * (r.m[k] / (1 - std::pow(c.beta1, step))) /
                  (std::sqrt(r.v[k] / (1 - std::pow(c.beta2, step))) + c.eps);
      }
    }
  }
  double error() const {
    double worst = 0;
    std::size_t i = 0;
    for (const auto& p : parameters.list()) worst = std::max(worst, error_of(p.values(), reference[i++].p));
    return worst;
  }
};

}  // namespace

TEST_CASE("adamw: equals its formula, with and without clipping, decay and groups that have none",
          "[train]") {
  for (const double clip : {1.0, 0.0, 1e9}) for (const double decay : {0.1, 0.0}) {
    Setup s;
    AdamwConfig c;
    c.clip = clip;
    c.weight_decay = decay;
    Adamw<Cpu, double> adamw(s.parameters, c);
    for (int step = 1; step <= 5; ++step) {
      s.gradients(step, 0.01 * step);
      s.reference_step(step, 0.01 * step, c);
      CHECK(adamw.grad_norm() == Approx(s.norm()).epsilon(1e-13));
      CHECK(adamw.step(0.01 * step) == Approx(s.norm()).epsilon(1e-13));
      CHECK(adamw.steps() == step);
      CAPTURE(clip, decay, step);
      CHECK(s.error() < 1e-14);
    }
  }
}

TEST_CASE("adamw: eps is added to the root, outside", "[train]") {
  Setup s;
  AdamwConfig c;
  c.eps = 0.1;
  Adamw<Cpu, double> adamw(s.parameters, c);
  s.gradients(1, 1e-3);
  s.reference_step(1, 0.01, c);
  adamw.step(0.01);
  CHECK(s.error() < 1e-14);
}

TEST_CASE("adamw: decay shrinks what has it even without a gradient, and spares what has none", "[train]") {
  Setup s;
  Adamw<Cpu, double> adamw(s.parameters, {});
  CHECK(adamw.step(0.5) == 0);  // nobody contributed
  std::size_t at = 0;
  for (const auto& p : s.parameters.list()) {
    const auto& before = s.reference[at++].p;
    for (std::size_t i = 0; i < before.size(); ++i)
      if (!(p.values()[i] == Approx(before[i] * (p.decay == Decay::yes ? 0.95 : 1)).epsilon(1e-15)))
        FAIL(p.name);
  }
}

TEST_CASE("adamw: a step clears the gradients, so that the next backward pass starts anew", "[train]") {
  Setup s;
  Adamw<Cpu, double> adamw(s.parameters, {});
  s.gradients(1, 1);
  adamw.step(0.1);
  for (const auto& p : s.parameters.list()) CHECK_FALSE(p.has_grad);
}

TEST_CASE("adamw: a norm that is not finite changes nothing and is returned", "[train]") {
  for (const double bad : {double(NAN), double(INFINITY)}) {
    Setup s;
    Adamw<Cpu, double> adamw(s.parameters, {});
    s.gradients(1, 1);
    s.parameters["e"].grad[39999] = bad;
    CHECK_FALSE(std::isfinite(adamw.step(0.1)));
    CHECK(adamw.steps() == 0);
    CHECK(s.error() == 0);
    CHECK(adamw.first_moment(s.parameters["a"])[0] == 0);
  }
}

TEST_CASE("adamw: float, and the same bits on any number of threads", "[train]") {
  std::vector<float> one;
  for (const int threads : {1, 2, 4}) {
    Bench<float> b({{300, 300}, {5}}, threads);
    Adamw<Cpu, float> adamw(b.parameters, {});
    for (int step = 0; step < 3; ++step) {
      for (int i = 0; i < 2; ++i) {
        const auto g = random_numbers<float>(std::size_t(b.at(i).numel()), std::uint64_t(step));
        std::copy(g.begin(), g.end(), b.at(i).grad);
        b.at(i).has_grad = true;
      }
      adamw.step(0.01);
    }
    if (threads == 1) one = b.values(0);
    CHECK(b.values(0) == one);
  }
}
