#include "depthbench/backend/cpu.hpp"
#include "depthbench/train/adamw.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

namespace {

struct Weights {
  Cpu cpu{1};
  Parameters<Cpu, float> parameters{cpu};
  Parameter<float>& w = parameters.declare("w", {64, 64}, Init::truncated_normal(0.02));
  Parameter<float>& gain = parameters.declare("gain", {16}, Init::constant(1));
  Weights() { parameters.allocate(7); }

  void train(Storage storage, int steps, double lr, float grad_of_gain = 0) {
    Adamw<Cpu, float> adamw(parameters, {.clip = 0, .storage = storage});
    for (int s = 0; s < steps; ++s) {
      parameters.settle_grads();
      for (auto& p : parameters.list()) std::fill(p.grad, p.grad + p.numel(), &p == &gain ? grad_of_gain : 0.f);
      adamw.step(lr);
    }
  }
};

bool is_bf16(float x) { return float(depthbench::bfloat16(x)) == x; }

}  // namespace

TEST_CASE("pure bf16: weight decay of the recipe changes no weight; in fp32 it shrinks all") {
  Weights pure, full;
  for (auto* s : {&pure, &full})
    for (float& x : s->w.values()) x = float(depthbench::bfloat16(x));
  const std::vector<float> before(pure.w.values().begin(), pure.w.values().end());
  pure.train(Storage::bf16, 100, 2e-3);
  full.train(Storage::fp32, 100, 2e-3);
  const double shrunk = std::pow(1 - 2e-3 * 0.1, 100);  // 0.9802
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(pure.w.values()[i] == before[i]);
    CHECK(full.w.values()[i] == Approx(shrunk * double(before[i])).epsilon(1e-5));
  }
}

TEST_CASE("pure bf16: a gain at 1 cannot rise by a step of 2e-3, but falls by one of 8e-3") {
  Weights up, down, full;
  up.train(Storage::bf16, 1, 2e-3, -1.f);
  full.train(Storage::fp32, 1, 2e-3, -1.f);
  down.train(Storage::bf16, 1, 8e-3, 1.f);
  CHECK(up.gain.values()[0] == 1.f);
  CHECK(full.gain.values()[0] == Approx(1.0018).epsilon(1e-5));  // decay takes 2e-4 of the 2e-3
  CHECK(down.gain.values()[0] == Approx(0.9921875));
}

TEST_CASE("pure bf16: parameters and moments hold bfloat16 numbers, except where float is asked for") {
  Weights s;
  s.gain.keep_fp32 = true;
  Adamw<Cpu, float> adamw(s.parameters, {.storage = Storage::bf16});
  const Rng rng(3);
  for (int step = 0; step < 5; ++step) {
    s.parameters.settle_grads();
    for (auto& p : s.parameters.list())
      for (std::int64_t i = 0; i < p.numel(); ++i) p.grad[i] = float(rng.normal(std::uint64_t(step * 10000 + i)));
    adamw.step(1e-2);
  }
  bool gain_is_bf16 = true;
  for (const float x : s.gain.values()) gain_is_bf16 = gain_is_bf16 && is_bf16(x);
  CHECK_FALSE(gain_is_bf16);
  for (std::size_t i = 0; i < s.w.values().size(); ++i) {
    CHECK(is_bf16(s.w.values()[i]));
    CHECK(is_bf16(adamw.first_moment(s.w)[i]));
    CHECK(is_bf16(adamw.second_moment(s.w)[i]));
  }
}

TEST_CASE("bf16 products round their inputs and add in float") {
  Cpu cpu(2);
  const int m = 37, n = 29, k = 83;
  std::vector<float> a(m * k), b(n * k), c(m * n, 1.f);
  const Rng rng(5);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(rng.normal(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(rng.normal(10000 + i));
  cpu.set_products(Products::bf16);
  cpu.gemm(GemmArgs<float>{Op::None, Op::Transpose, m, n, k, a.data(), k, b.data(), k}, 1.f, c.data(), n);
  double differs = 0;
  for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) {
    double rounded = 1, exact = 1, size = 1;
    for (int p = 0; p < k; ++p) {
      const double x = float(depthbench::bfloat16(a[i * k + p])), y = float(depthbench::bfloat16(b[j * k + p]));
      rounded += x * y;
      size += std::fabs(x * y);
      exact += double(a[i * k + p]) * double(b[j * k + p]);
    }
    CHECK(std::fabs(c[i * n + j] - rounded) <= k * 0x1p-24 * size);  // k additions in float
    differs = std::max(differs, std::fabs(rounded - exact));
  }
  CHECK(differs > 1e-3);  // the test can tell rounded inputs from exact ones
}
