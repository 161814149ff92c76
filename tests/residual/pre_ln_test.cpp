#include "depthbench/residual/pre_ln.hpp"

#include "tests/catch.hpp"
#include "tests/residual/chain.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {
std::unique_ptr<Chain::Design> pre_ln() { return std::make_unique<PreLn<Cpu, double>>(); }
}  // namespace

TEST_CASE("pre_ln: equals its formula", "[residual]") {
  Chain c(pre_ln(), 7, 5, 6, 1e-2);
  c.randomize();
  std::vector<double> needs;
  std::vector<std::vector<double>> states(4);
  for (int t = 0; t < 7; ++t) {
    auto x = c.token(c.x(), t);
    for (int k = 0; k < 6; ++k) {
      if (k % 2 == 0) states[std::size_t(k / 2)].insert(states[std::size_t(k / 2)].end(), x.begin(), x.end());
      const auto y = c.times_branch(k, c.norm(x, c.at(c.gain_name(k)), 1e-2));
      for (int i = 0; i < 5; ++i) x[std::size_t(i)] += y[std::size_t(i)];
    }
    states[3].insert(states[3].end(), x.begin(), x.end());
    needs.insert(needs.end(), x.begin(), x.end());
  }
  CHECK(error_of(c.run().values(), needs) < 1e-13);
  CHECK(largest(c.states, states) < 1e-13);
}

TEST_CASE("pre_ln: gradient agrees with finite differences", "[residual]") {
  Chain c(pre_ln(), 4, 5, 4, 1e-2);
  c.randomize();
  CHECK(c.b.check([&] { return probe(c.run()); }).worst < 1e-7);
}

TEST_CASE("pre_ln: every parameter is alive, at a random point and at initialisation", "[residual]") {
  Chain c(pre_ln(), 7, 5, 4, 1e-2);
  CHECK(c.dead() == "");
  c.randomize();
  CHECK(c.dead() == "");
}

TEST_CASE("pre_ln: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  Chain c(pre_ln(), 7, 5, 6);
  c.randomize();
  const auto kept = c.gradients(Verbs::advance, Keep::everything);
  CHECK(c.gradients(Verbs::advance, Keep::recomputed) == kept);
  CHECK(largest(c.gradients(Verbs::write_then_read, Keep::everything), kept) < 1e-13);
}

TEST_CASE("pre_ln: keeps its invariant, the read-out is the embedding and all branches added up",
          "[residual]") {
  Chain c(pre_ln(), 7, 5, 4);
  const auto out = copy_of(c.run());
  auto sum = c.states[0];
  for (const auto& y : c.branches) for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
  CHECK(error_of(out, sum) < 1e-14);
  CHECK(c.states[0] == c.b.values(0));
}

TEST_CASE("pre_ln: names, decay, head and initial scale", "[residual]") {
  Chain c(pre_ln(), 1, 4, 4);
  for (const auto* name : {"blocks.0.attention_norm.weight", "blocks.0.feed_forward_norm.weight",
                           "blocks.1.attention_norm.weight", "blocks.1.feed_forward_norm.weight"}) {
    auto* p = c.b.parameters.find(name);
    REQUIRE(p);
    CHECK(p->shape == Shape{4});
    CHECK(p->decay == Decay::yes);
    CHECK(p->values()[0] == 1);
  }
  CHECK(c.b.parameters.list().size() == 1 + 4 + 4);
  CHECK(c.design->head_eps({4, 4, 0.25}) == 0.25);
  for (const auto w : {Weight::q, Weight::out, Weight::w2}) CHECK(c.design->init_scale(w) == 1);
}

TEST_CASE("pre_ln: rejects options, saying which", "[residual]") {
  using Design = PreLn<Cpu, double>;
  CHECK_THROWS_AS(Design({{"n_streams", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"n_streams", 2}}), "residual design pre_ln has no option n_streams");
}
