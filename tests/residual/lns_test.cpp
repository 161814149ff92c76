#include "depthbench/residual/lns.hpp"

#include "depthbench/residual/pre_ln.hpp"
#include "tests/catch.hpp"
#include "tests/residual/one_stream.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

using Design = Lns<Cpu, double>;
std::unique_ptr<Chain::Design> lns() { return std::make_unique<Design>(); }
std::unique_ptr<Chain::Design> pre_ln() { return std::make_unique<PreLn<Cpu, double>>(); }

}  // namespace

TEST_CASE("lns: equals its formula", "[residual]") {
  for (const auto& [n, d, K] : {std::array{7, 5, 6}, {3, 17, 2}, {2, 6, 24}}) {
    Chain c(lns(), n, d, K, 1e-2);
    c.randomize();
    const auto needs = one_stream(c, [&](const Row& x, int k) {
      Row u = c.norm(x, c.at(c.gain_name(k)), 1e-2);
      for (double& a : u) a /= std::sqrt(1.0 + k / 2);
      return sum_of(1, x, c.times_branch(k, u));
    });
    CHECK(error_of_run(c, needs) < 1e-12);
  }
}

TEST_CASE("lns: gradient agrees with finite differences", "[residual]") {
  for (const int K : {2, 6}) {
    Chain c(lns(), 4, 5, K, 1e-2);
    c.randomize();
    CHECK(c.b.check([&] { return probe(c.run()); }).worst < 1e-7);
  }
}

TEST_CASE("lns: every parameter is alive, at a random point and at initialisation", "[residual]") {
  Chain c(lns(), 7, 5, 4, 1e-2);
  CHECK(c.dead() == "");
  c.randomize();
  CHECK(c.dead() == "");
}

TEST_CASE("lns: at initialisation it is Pre-LN with gains 1 / sqrt(block)", "[residual]") {
  Chain a(lns(), 7, 5, 8), b(pre_ln(), 7, 5, 8);
  for (int k = 0; k < 8; ++k) for (int i = 0; i < 5; ++i) b.find(b.gain_name(k))[i] = 1 / std::sqrt(1.0 + k / 2);
  CHECK(error_of(copy_of(a.run()), copy_of(b.run())) < 1e-13);
  CHECK(largest(a.states, b.states) < 1e-13);
}

TEST_CASE("lns: reduces to Pre-LN when there is one block, bit for bit", "[residual]") {
  Chain a(lns(), 7, 5, 2), b(pre_ln(), 7, 5, 2), deep(lns(), 7, 5, 4), deep_pre_ln(pre_ln(), 7, 5, 4);
  for (auto* c : {&a, &b, &deep, &deep_pre_ln}) c->randomize();
  CHECK(copy_of(a.run()) == copy_of(b.run()));
  CHECK((a.gradients(Verbs::advance, Keep::everything) == b.gradients(Verbs::advance, Keep::everything)));
  CHECK(error_of(copy_of(deep.run()), copy_of(deep_pre_ln.run())) > 1e-2);  // with two blocks it is not
}

TEST_CASE("lns: keeps its invariant, the read-out is the embedding and all branches added up", "[residual]") {
  Chain c(lns(), 7, 5, 4);
  const auto out = copy_of(c.run());
  auto sum = c.states[0];
  for (const auto& y : c.branches) for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
  CHECK(error_of(out, sum) < 1e-14);
  for (int k = 0; k < 4; ++k) {  // the branches' inputs shrink, by block
    double square = 0;
    for (const double a : c.inputs[std::size_t(k)]) square += a * a / 35;
    CHECK(square == Approx(k < 2 ? 1 : 0.5).epsilon(1e-4));
  }
}

TEST_CASE("lns: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  Chain c(lns(), 19, 5, 6);
  c.randomize();
  CHECK(error_of_verbs(c) < 1e-12);
}

TEST_CASE("lns: names, decay, head and initial scale", "[residual]") {
  Chain c(lns(), 1, 4, 4);
  for (int k = 0; k < 4; ++k) {
    auto* p = c.b.parameters.find(c.gain_name(k));
    REQUIRE(p);
    CHECK(p->shape == Shape{4});
    CHECK(p->decay == Decay::yes);
    CHECK(p->values()[0] == 1);
  }
  CHECK(c.b.parameters.list().size() == 1 + 4 + 4);
  CHECK(c.design->head_eps({4, 4, 0.25, 0}) == 0.25);  // the last norm has no factor
  for (const auto w : {Weight::q, Weight::out, Weight::w2}) CHECK(c.design->init_scale(w) == 1);
}

TEST_CASE("lns: rejects options, saying which", "[residual]") {
  CHECK_THROWS_AS(Design({{"n_streams", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"n_streams", 2}}), "residual design lns has no option n_streams");
}
