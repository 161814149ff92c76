// Whole models of every design in float beside double.
#include "depthbench/train/adamw.hpp"
#include "tests/catch.hpp"
#include "tests/residual/models.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("every design: a model of one block trains, in float and in double", "[residual]") {
  const auto trains = [](auto zero, const Named& named) {
    using R = decltype(zero);
    for (const auto& c : {model_config(1, 1, 1, 2), model_config(1, 3, 1, 6)}) {
      Whole<R> m(named, c);
      Adamw<Cpu, R> adamw(m.model.parameters(), {});
      const double before = double(*m.loss().value());
      m.tape.clear();
      for (int step = 0; step < 30; ++step) {
        m.tape.backward(m.loss());
        CHECK(std::isfinite(adamw.step(1e-2)));
      }
      CAPTURE(text_of(named), c.d_model, sizeof(R));
      CHECK(before == Approx(std::log(11.0)).epsilon(0.02));
      CHECK(double(*m.loss().value()) < before - 0.1);
    }
  };
  for (const auto& named : all_designs) {
    trains(0.f, named);
    trains(0.0, named);
  }
}

// How far may float be from double? Rounding acts like a relative change of every weight by 2^-24 at each of the model's
// stages. The change is measured on weights disturbed by 2^-20 in double and scaled down; 2 K + 4 stages of several
// roundings each, Sinkhorn's half steps for mHC.
TEST_CASE("every design: float agrees with double", "[residual]") {
  for (const auto& named : all_designs) {
    Whole<float> f(named, model_config(4, 4, 2, 6), 20);
    Whole<double> d(named, model_config(4, 4, 2, 6), 20);
    f.randomize();
    d.randomize();
    const auto exact = d.logits();
    d.gradients();
    f.gradients();
    std::vector<std::vector<double>> grads;
    for (const auto& p : d.model.parameters().list()) grads.emplace_back(p.grads().begin(), p.grads().end());
    for (auto& p : d.model.parameters().list()) {
      const auto z = random_numbers(std::size_t(p.numel()), 7 + p.offset);
      for (std::size_t i = 0; i < z.size(); ++i) p.value[i] *= 1 + 0x1p-20 * z[i];
    }
    const double stages = 2 * 8 + 4 + (named.design == "mhc" ? 40 : 0);
    const double bound = 4 * stages * (1 + error_of(d.logits(), exact) * 0x1p20) * 0x1p-24;
    d.gradients();
    CAPTURE(text_of(named), bound);
    CHECK(bound < 1e-3);
    CHECK(error_of(f.logits(), exact) < bound);
    std::size_t i = 0;
    for (const auto& p : f.model.parameters().list()) {
      const auto& needs = grads[i];
      const auto& moved = d.model.parameters().list()[i++];
      double largest = 0;
      for (const double g : needs) largest = std::max(largest, std::fabs(g));
      if (largest < 1e-4) continue;  // structurally next to nothing: noise in float
      CAPTURE(p.name);
      CHECK(error_of(p.grads(), needs) < 4 * stages * (1 + error_of(moved.grads(), needs) * 0x1p20) * 0x1p-24);
    }
  }
}
