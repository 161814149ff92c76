#include "depthbench/residual/sandwich_ln.hpp"

#include "tests/catch.hpp"
#include "tests/residual/one_stream.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

using Design = SandwichLn<Cpu, double>;
std::unique_ptr<Chain::Design> sandwich_ln() { return std::make_unique<Design>(); }
Trace formula(Chain& c) {
  return one_stream(c, [&](const Row& x, int k) {
    const Row y = c.times_branch(k, c.norm(x, c.at(c.gain_name(k)), c.norm_eps));
    return sum_of(1, x, c.norm(y, c.at(outer_name(k)), c.norm_eps));
  });
}

}  // namespace

TEST_CASE("sandwich_ln: equals its formula", "[residual]") {
  for (const auto& [n, d, K] : {std::array{7, 5, 6}, {3, 17, 2}, {2, 6, 24}}) {
    Chain c(sandwich_ln(), n, d, K, 1e-2);
    c.randomize();
    CHECK(error_of_run(c, formula(c)) < 1e-12);
  }
}

TEST_CASE("sandwich_ln: gradient agrees with finite differences", "[residual]") {
  for (const int K : {2, 6}) {
    Chain c(sandwich_ln(), 4, 5, K, 1e-2);
    c.randomize();
    CHECK(c.b.check([&] { return probe(c.run()); }).worst < 1e-7);
  }
}

TEST_CASE("sandwich_ln: every parameter is alive, at a random point and at initialisation", "[residual]") {
  Chain c(sandwich_ln(), 7, 5, 4, 1e-2);
  CHECK(c.dead() == "");
  c.randomize();
  CHECK(c.dead() == "");
}

TEST_CASE("sandwich_ln: at initialisation every update has root mean square 1", "[residual]") {
  Chain c(sandwich_ln(), 7, 5, 2, 1e-12);
  c.run();
  const auto needs = one_stream(c, [&](const Row& x, int k) {
    Row y = c.times_branch(k, c.norm(x, nullptr, 0));
    double square = 0;
    for (const double a : y) square += a * a / 5;
    for (double& a : y) a /= std::sqrt(square);
    return sum_of(1, x, y);
  });
  CHECK(error_of_run(c, needs) < 1e-10);
}

TEST_CASE("sandwich_ln: reduces to Pre-LN where the outer gain makes up for the norm", "[residual]") {
  Chain c(sandwich_ln(), 1, 5, 2, 1e-12);  // one token: one factor a sublayer
  const auto needs = one_stream(c, [&](const Row& x, int k) {
    const Row y = c.times_branch(k, c.norm(x, nullptr, 0));
    double square = 0;
    for (const double a : y) square += a * a / 5;
    for (int i = 0; i < 5; ++i) c.find(outer_name(k))[i] = std::sqrt(square);
    return sum_of(1, x, y);
  });
  CHECK(error_of_run(c, needs) < 1e-10);
}

TEST_CASE("sandwich_ln: keeps its invariant, scaled output projections change nothing but through eps", "[residual]") {
  Chain c(sandwich_ln(), 7, 5, 6, 1e-12);
  c.randomize();
  const auto before = copy_of(c.run());
  for (int k = 0; k < 6; ++k) for (auto& w : c.b.at(1 + k).values()) w *= k % 2 ? 2 : 0.5;
  CHECK(error_of(copy_of(c.run()), before) < 1e-10);
  for (int k = 0; k < 6; ++k) for (auto& w : c.b.at(1 + k).values()) w *= -1;
  CHECK(error_of(copy_of(c.run()), before) > 0.1);
}

TEST_CASE("sandwich_ln: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  Chain c(sandwich_ln(), 19, 5, 6);
  c.randomize();
  CHECK(error_of_verbs(c) < 1e-12);
}

TEST_CASE("sandwich_ln: names, decay, head and initial scale", "[residual]") {
  Chain c(sandwich_ln(), 1, 4, 4);
  auto& p = c.b.parameters;
  for (int k = 0; k < 4; ++k) for (const auto& name : {c.gain_name(k), outer_name(k)}) {
    REQUIRE(p.find(name));
    CHECK(p[name].shape == Shape{4});
    CHECK(p[name].decay == Decay::yes);
    CHECK(p[name].values()[3] == 1);
  }
  CHECK(p.list().size() == 1 + 4 + 8);
  CHECK(p.numel(Part::residual) == 4 * 4);
  CHECK(c.design->head_eps({4, 4, 0.25, 0}) == 0.25);
  for (const auto w : {Weight::q, Weight::out, Weight::w2}) CHECK(c.design->init_scale(w) == 1);
}

TEST_CASE("sandwich_ln: rejects options, saying which", "[residual]") {
  CHECK_THROWS_AS(Design({{"n_streams", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"n_streams", 2}}), "residual design sandwich_ln has no option n_streams");
}
