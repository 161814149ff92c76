#include "depthbench/residual/deepnorm.hpp"

#include "tests/catch.hpp"
#include "tests/residual/one_stream.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

using Design = DeepNorm<Cpu, double>;
std::unique_ptr<Chain::Design> deepnorm(int sublayers, double eps) {
  auto design = std::make_unique<Design>();
  design->configure({0, sublayers, eps, 0});
  return design;
}
Row layer_norm(const Row& x, const double* gain, double eps) {
  const double d = double(x.size());
  double mean = 0, var = 0;
  for (const double a : x) mean += a / d;
  for (const double a : x) var += (a - mean) * (a - mean) / d;
  Row y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(gain[i] * (x[i] - mean) / std::sqrt(var + eps));
  return y;
}

}  // namespace

TEST_CASE("deepnorm: equals its formula", "[residual]") {
  for (const auto& [n, d, K] : {std::array{7, 5, 6}, {3, 17, 2}, {2, 6, 24}}) {
    Chain c(deepnorm(K, 1e-2), n, d, K, 1e-2);
    c.randomize();
    const double alpha = std::sqrt(std::sqrt(double(K)));
    const auto needs = one_stream(c, [&](const Row& x, int k) { return layer_norm(sum_of(alpha, x, c.times_branch(k, x)), c.at(c.gain_name(k)), 1e-2); });
    CHECK(error_of_run(c, needs) < 1e-12);
  }
}

TEST_CASE("deepnorm: gradient agrees with finite differences", "[residual]") {
  for (const int K : {2, 6}) {
    Chain c(deepnorm(K, 1e-2), 4, 5, K, 1e-2);
    c.randomize();
    CHECK(c.b.check([&] { return probe(c.run()); }).worst < 1e-7);
  }
}

TEST_CASE("deepnorm: every parameter is alive, at a random point and at initialisation", "[residual]") {
  Chain c(deepnorm(4, 1e-2), 7, 5, 4, 1e-2);
  CHECK(c.dead() == "");
  c.randomize();
  CHECK(c.dead() == "");
}

TEST_CASE("deepnorm: at initialisation the branches are small: beta times the common scale, queries and keys aside", "[residual]") {
  for (const int L : {1, 4, 35}) {
    const auto design = deepnorm(2 * L, 1e-6);
    for (const auto w : {Weight::v, Weight::out, Weight::w1, Weight::w2, Weight::w3}) CHECK(design->init_scale(w) == Approx(std::pow(8.0 * L, -0.25)));
    for (const auto w : {Weight::q, Weight::k}) CHECK(design->init_scale(w) == 1);
  }
}

TEST_CASE("deepnorm: reduces to the norm of the embedding when the branches are zero", "[residual]") {
  Chain c(deepnorm(6, 1e-12), 7, 5, 6, 1e-12);
  for (int k = 0; k < 6; ++k) for (auto& w : c.b.at(1 + k).values()) w = 0;
  std::vector<double> needs;
  const Row ones(5, 1.0);
  for (int t = 0; t < 7; ++t) {
    const Row x = layer_norm(c.token(c.x(), t), ones.data(), 0);
    needs.insert(needs.end(), x.begin(), x.end());
  }
  CHECK(error_of(copy_of(c.run()), needs) < 1e-10);
}

TEST_CASE("deepnorm: keeps its invariant, states after the first have mean 0 and variance 1", "[residual]") {
  Chain c(deepnorm(6, 1e-12), 7, 8, 6, 1e-12);
  c.run();
  REQUIRE(c.states.size() == 4);
  for (int l = 1; l < 4; ++l) for (int t = 0; t < 7; ++t) {
    double mean = 0, square = 0;
    for (int i = 0; i < 8; ++i) {
      const double a = c.states[std::size_t(l)][std::size_t(t * 8 + i)];
      mean += a / 8;
      square += a * a / 8;
    }
    CHECK(std::fabs(mean) < 1e-14);
    CHECK(square == Approx(1).epsilon(1e-9));
  }
  CHECK(c.states[0] == c.b.values(0));
  CHECK(c.inputs[0] == c.states[0]);  // branches read the raw stream
}

TEST_CASE("deepnorm: verbs kept or recomputed give the same bits", "[residual]") {
  Chain c(deepnorm(6, 1e-6), 19, 5, 6);
  c.randomize();
  CHECK(error_of_verbs(c) == 0);
}

TEST_CASE("deepnorm: names, decay and head", "[residual]") {
  Chain c(deepnorm(4, 1e-6), 1, 4, 4);
  for (int k = 0; k < 4; ++k) {
    auto* p = c.b.parameters.find(c.gain_name(k));
    REQUIRE(p);
    CHECK(p->shape == Shape{4});
    CHECK(p->decay == Decay::yes);
    CHECK(p->values()[0] == 1);
  }
  CHECK(c.b.parameters.list().size() == 1 + 4 + 4);
  CHECK(c.design->head_eps({4, 4, 0.25, 0}) == 0.25);
}

TEST_CASE("deepnorm: rejects options, saying which", "[residual]") {
  CHECK_THROWS_AS(Design({{"alpha", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"alpha", 2}}), "residual design deepnorm has no option alpha");
}
