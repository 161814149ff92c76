#include "depthbench/residual/keel.hpp"

#include "depthbench/residual/pre_ln.hpp"
#include "tests/catch.hpp"
#include "tests/residual/one_stream.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Row = Chain::Row;

namespace {

using Design = Keel<Cpu, double>;
std::unique_ptr<Chain::Design> keel() { return std::make_unique<Design>(); }

}  // namespace

TEST_CASE("keel: equals its formula", "[residual]") {
  for (const auto& [n, d, K] : {std::array{7, 5, 6}, {3, 17, 2}, {2, 6, 24}}) {
    Chain c(keel(), n, d, K, 1e-2);
    c.randomize();
    const auto needs = one_stream(c, [&, K = K](const Row& x, int k) {
      const Row y = c.times_branch(k, c.norm(x, c.at(c.gain_name(k)), 1e-2));
      const Row sum = sum_of(k < 2 ? 1 : K, x, y);
      return k == 0 ? sum : c.norm(sum, c.at(outer_name(k)), 1e-2);
    });
    CHECK(error_of_run(c, needs) < 1e-12);
  }
}

TEST_CASE("keel: gradient agrees with finite differences", "[residual]") {
  for (const int K : {2, 6}) {
    Chain c(keel(), 4, 5, K, 1e-2);
    c.randomize();
    CHECK(c.b.check([&] { return probe(c.run()); }).worst < 1e-7);
  }
}

TEST_CASE("keel: every parameter is alive, at a random point and at initialisation", "[residual]") {
  Chain c(keel(), 7, 5, 4, 1e-2);
  CHECK(c.dead() == "");
  c.randomize();
  CHECK(c.dead() == "");
}

TEST_CASE("keel: at initialisation every state but the first has root mean square 1", "[residual]") {
  Chain c(keel(), 7, 5, 6, 1e-12);
  c.run();
  for (int l = 1; l < 4; ++l) for (int t = 0; t < 7; ++t) {
    double square = 0;
    for (int i = 0; i < 5; ++i) square += c.states[std::size_t(l)][std::size_t(t * 5 + i)] * c.states[std::size_t(l)][std::size_t(t * 5 + i)] / 5;
    CHECK(square == Approx(1).epsilon(1e-9));
  }
}

TEST_CASE("keel: reduces to the norm of Pre-LN when there is one block", "[residual]") {
  Chain a(keel(), 7, 5, 2, 1e-2), b(std::make_unique<PreLn<Cpu, double>>(), 7, 5, 2, 1e-2);
  std::vector<double> needs;
  b.run();
  for (int t = 0; t < 7; ++t) {
    const Row x = a.norm(b.token(b.states[1].data(), t), nullptr, 1e-2);
    needs.insert(needs.end(), x.begin(), x.end());
  }
  CHECK(error_of(copy_of(a.run()), needs) < 1e-13);
}

TEST_CASE("keel: keeps its invariant, in a deep model a branch moves the stream by 1 / K of its own size at most", "[residual]") {
  constexpr int K = 40;
  Chain c(keel(), 7, 5, K, 1e-12);
  c.run();
  for (int l = 2; l <= K / 2; ++l) for (int t = 0; t < 7; ++t) {
    double move = 0, size = 0;
    for (int i = 0; i < 5; ++i) {
      const auto at = std::size_t(t * 5 + i);
      move += std::pow(c.states[std::size_t(l)][at] - c.states[std::size_t(l - 1)][at], 2);
    }
    for (const int k : {2 * l - 2, 2 * l - 1}) {  // |x / |x| - z / |z|| <= 2 |x - z| / |z|, with z = K x
      double square = 0;
      for (int i = 0; i < 5; ++i) square += std::pow(c.branches[std::size_t(k)][std::size_t(t * 5 + i)], 2);
      size += 2 * std::sqrt(square) / K;
    }
    CHECK(std::sqrt(move) <= size);
    CHECK(move > 0);
  }
}

TEST_CASE("keel: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  for (const int K : {2, 6}) {
    Chain c(keel(), 19, 5, K);
    c.randomize();
    CHECK(error_of_verbs(c) < 1e-12);
  }
}

TEST_CASE("keel: names, decay, head and initial scale", "[residual]") {
  Chain c(keel(), 1, 4, 4);
  auto& p = c.b.parameters;
  CHECK_FALSE(p.find(outer_name(0)));
  for (int k = 0; k < 4; ++k) CHECK(p.find(c.gain_name(k)));
  for (int k = 1; k < 4; ++k) {
    REQUIRE(p.find(outer_name(k)));
    CHECK(p[outer_name(k)].shape == Shape{4});
    CHECK(p[outer_name(k)].decay == Decay::yes);
    CHECK(p[outer_name(k)].values()[3] == 1);
  }
  CHECK(p.list().size() == 1 + 4 + 7);
  CHECK(c.design->head_eps({4, 4, 0.25, 0}) == 0.25);
  for (const auto w : {Weight::q, Weight::out, Weight::w2}) CHECK(c.design->init_scale(w) == 1);
}

TEST_CASE("keel: rejects options, saying which", "[residual]") {
  CHECK_THROWS_AS(Design({{"alpha", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"alpha", 2}}), "residual design keel has no option alpha");
}
