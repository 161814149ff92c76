#include "depthbench/backend/cpu.hpp"
#include "depthbench/residual/mhc.hpp"

#include "depthbench/residual/pre_ln.hpp"
#include "tests/catch.hpp"
#include "tests/residual/mhc_loops.hpp"

using namespace depthbench;
using namespace depthbench_test;
using namespace depthbench_test::mhc_loops;

namespace {

using Design = Mhc<Cpu, double>;
std::unique_ptr<Chain::Design> mhc(int n, int iterations = 20) {
  return std::make_unique<Design>(DesignOptions{{"n_streams", double(n)}, {"sinkhorn_iters", double(iterations)}});
}
double norm_of(const Parameter<double>& p) {
  double s = 0;
  for (const double g : p.grads()) s += g * g;
  return std::sqrt(s);
}

}  // namespace

TEST_CASE("mhc design: equals its formula for any number of streams", "[residual]") {
  for (const int n : {1, 2, 3, 4, 5, 8}) for (const int iterations : {1, 5, 20}) {
    Chain c(mhc(n, iterations), 5, 6, 4, 1e-2);
    c.randomize();
    std::vector<double> needs;
    std::vector<std::vector<double>> states(3);
    for (int t = 0; t < 5; ++t) {
      Row mean(6, 0);
      for (const auto& s : formula(c, n, iterations, t, states)) for (std::size_t i = 0; i < 6; ++i) mean[i] += s[i] / n;
      needs.insert(needs.end(), mean.begin(), mean.end());
    }
    CAPTURE(n, iterations);
    CHECK(error_of(c.run().values(), needs) < 1e-11);
    CHECK(largest(c.states, states) < 1e-11);
  }
}

TEST_CASE("mhc design: gradient agrees with finite differences", "[residual]") {
  for (const int n : {1, 2, 3, 4}) {
    Chain c(mhc(n, 5), 3, 5, 4, 1e-2);
    c.randomize();
    const auto check = c.b.check([&] { return probe(c.run()); }, 2);
    CAPTURE(n, check.parameter);
    CHECK(check.worst < 1e-6);  // 2e-16 of a loss of 10 over a step of 1e-5, relative to the dead H_res of sublayer 0
  }
}

// The mean read-out ignores the last H_res, and equal streams the first, but for what Sinkhorn leaves of the sums of its
// columns (eps) and rows (convergence); a norm follows the read vector of sublayer 0.
TEST_CASE("mhc design: every parameter is alive at a random point, but for H_res of the ends and the scale of the first read", "[residual]") {
  constexpr int n = 3, d = 5, K = 6, count = n * n + 2 * n;
  Chain c(mhc(n, 40), 7, d, K, 1e-9);
  c.randomize();
  c.gradients(Verbs::advance, Keep::everything);
  double least = INFINITY;
  for (int k = 0; k < K; ++k) {
    const auto& phi = c.b.parameters[connection(k) + "phi"];
    const auto& b = c.b.parameters[connection(k) + "b"];
    const bool mixes = k > 0 && k < K - 1;
    for (int j = 0; j < count; ++j) {
      double column = 0;
      for (int i = 0; i < n * d; ++i) column = std::max(column, std::fabs(phi.grads()[std::size_t(i * count + j)]));
      const double both = std::max(column, std::fabs(b.grads()[std::size_t(j)]));
      CAPTURE(k, j);
      if (j < n ? k > 0 : j < 2 * n || mixes) {
        CHECK(std::fabs(b.grads()[std::size_t(j)]) > 1e-4);
        for (int i = 0; i < n * d; ++i) CHECK(std::fabs(phi.grads()[std::size_t(i * count + j)]) > 1e-8);
        least = std::min(least, both);
      } else {
        CHECK(both < 1e-4);
      }
    }
    CAPTURE(k);
    CHECK((norm_of(c.b.parameters[connection(k) + "alpha_pre"]) > 1e-4) == (k > 0));
    CHECK(norm_of(c.b.parameters[connection(k) + "alpha_post"]) > 1e-4);
    CHECK((norm_of(c.b.parameters[connection(k) + "alpha_res"]) > 1e-4) == mixes);
    for (const double g : c.b.parameters[c.gain_name(k)].grads()) CHECK(std::fabs(g) > 1e-6);
  }
  CHECK(least > 1e-4);
}

TEST_CASE("mhc design: at initialisation the alphas are dead, the projections are not", "[residual]") {
  Chain c(mhc(2), 7, 5, 6, 1e-2);
  c.gradients(Verbs::advance, Keep::everything);
  for (int k = 0; k < 6; ++k) {
    for (const auto* name : {"alpha_pre", "alpha_post", "alpha_res"}) CHECK(c.b.parameters[connection(k) + name].grads()[0] == 0);
    for (const double g : c.b.parameters[connection(k) + "phi"].grads()) CHECK(g != 0);
  }
}

TEST_CASE("mhc design: at initialisation equal streams are pulled apart", "[residual]") {
  Chain c(mhc(4), 7, 5, 6, 1e-2);
  c.gradients(Verbs::advance, Keep::everything);
  const auto g = c.b.parameters[connection(0) + "b"].grads();
  for (std::size_t s = 0; s < 4; ++s) for (std::size_t other = 0; other < s; ++other) CHECK(std::fabs(g[4 + s] - g[4 + other]) > 1e-3);
}

TEST_CASE("mhc design: at initialisation it is Pre-LN nearly, and not exactly", "[residual]") {
  for (const int n : {2, 3, 4}) {
    Chain a(mhc(n), 7, 5, 6), b(std::make_unique<PreLn<Cpu, double>>(), 7, 5, 6);
    const double error = error_of(copy_of(a.run()), copy_of(b.run()));
    CAPTURE(n);
    CHECK(error < 2e-4);
    CHECK(error > 1e-7);
  }
}

TEST_CASE("mhc design: at initialisation one stream is read, all are written once, each keeps to itself", "[residual]") {
  for (const int n : {1, 4, 8}) {
    Chain c(mhc(n), 1, 5, 12);
    const std::vector<Row> x(std::size_t(n), c.token(c.x(), 0));
    for (int k = 0; k < 12; ++k) {
      const auto h = coefficients(c, x, k, 20);
      for (int s = 0; s < n; ++s) {
        CHECK(h.pre[std::size_t(s)] == Approx(s == k % n ? 1 : 0).margin(4e-4));
        CHECK(h.post[std::size_t(s)] == 1);
        for (int i = 0; i < n; ++i) CHECK(h.res[std::size_t(s)][std::size_t(i)] == Approx(i == s ? 1 : 0).margin(3e-3));
      }
      CHECK(c.at(connection(k) + "b")[k % n] == 8);
      CHECK(c.at(connection(k) + "b")[n] == 0);
      CHECK(c.at(connection(k) + "b")[2 * n] == 0);
      if (n > 1) CHECK(c.at(connection(k) + "b")[(k + 1) % n] == -8);
      if (n > 1) CHECK(c.at(connection(k) + "b")[2 * n + 1] == -8);
      CHECK(*c.at(connection(k) + "alpha_res") == 0.01);
      CHECK(c.at(connection(k) + "phi")[3] == 0);
    }
  }
}

TEST_CASE("mhc design: reduces to x + 2 sigmoid(b) S(u) when there is one stream", "[residual]") {
  Chain c(mhc(1), 7, 5, 4, 1e-12);
  c.randomize();
  for (int k = 0; k < 4; ++k) for (int i = 0; i < 15; ++i) c.find(connection(k) + "phi")[i] = 0;
  std::vector<double> needs;
  for (int t = 0; t < 7; ++t) {
    Row x = c.token(c.x(), t);
    for (int k = 0; k < 4; ++k) {
      const Row y = c.times_branch(k, c.norm(x, c.at(c.gain_name(k)), 0));
      for (std::size_t i = 0; i < 5; ++i) x[i] += 2 / (1 + std::exp(-c.at(connection(k) + "b")[1])) * y[i];
    }
    needs.insert(needs.end(), x.begin(), x.end());
  }
  CHECK(error_of(copy_of(c.run()), needs) < 2e-5);  // H_res is 1 up to 1e-6 a sublayer
}

TEST_CASE("mhc design: reduces to Pre-LN when streams are equal, rows sum to 1 and every write weight is 1", "[residual]") {
  constexpr int n = 4;
  Chain a(mhc(n, 64), 7, 5, 6, 1e-12), b(std::make_unique<PreLn<Cpu, double>>(), 7, 5, 6, 1e-12);
  a.randomize();
  for (int k = 0; k < 6; ++k) {
    for (int i = 0; i < 5 * n * (n * n + 2 * n); ++i) a.find(connection(k) + "phi")[i] = 0;
    for (int s = 0; s < n; ++s) a.find(connection(k) + "b")[n + s] = 0;
    for (int i = 0; i < 5; ++i) b.find(b.gain_name(k))[i] = a.at(a.gain_name(k))[i];
  }
  CHECK(error_of(copy_of(a.run()), copy_of(b.run())) < 1e-4);
  double apart = 0, size = 0;
  for (int t = 0; t < 7; ++t) for (int s = 1; s < n; ++s) for (int i = 0; i < 5; ++i) {
    apart = std::max(apart, std::fabs(a.states[3][std::size_t((t * n + s) * 5 + i)] - a.states[3][std::size_t(t * n * 5 + i)]));
    size = std::max(size, std::fabs(a.states[3][std::size_t((t * n + s) * 5 + i)]));
  }
  CHECK(apart < 1e-4 * size);  // and they stay equal
}

TEST_CASE("mhc design: keeps its invariant, streams renamed everywhere change nothing", "[residual]") {
  constexpr int n = 4, d = 5, count = n * n + 2 * n;
  Chain a(mhc(n), 7, d, 6), b(mhc(n), 7, d, 6);
  a.randomize();
  b.randomize();
  const int to[n] = {2, 0, 3, 1};  // stream s of a is stream to[s] of b
  const auto column = [&](int j) { return j < n ? to[j] : j < 2 * n ? n + to[j - n] : 2 * n + to[(j - 2 * n) / n] * n + to[(j - 2 * n) % n]; };
  for (int k = 0; k < 6; ++k) for (int j = 0; j < count; ++j) {
    b.find(connection(k) + "b")[column(j)] = a.find(connection(k) + "b")[j];
    for (int s = 0; s < n; ++s) for (int i = 0; i < d; ++i)
      b.find(connection(k) + "phi")[(to[s] * d + i) * count + column(j)] = a.find(connection(k) + "phi")[(s * d + i) * count + j];
  }
  CHECK(error_of(copy_of(b.run()), copy_of(a.run())) < 1e-12);
  double worst = 0, same = 0;
  for (int t = 0; t < 7; ++t) for (int s = 0; s < n; ++s) for (int i = 0; i < d; ++i) {
    const double x = a.states[3][std::size_t((t * n + s) * d + i)];
    worst = std::max(worst, std::fabs(x - b.states[3][std::size_t((t * n + to[s]) * d + i)]));
    same = std::max(same, std::fabs(x - b.states[3][std::size_t((t * n + s) * d + i)]));
  }
  CHECK(worst < 1e-11);
  CHECK(same > 0.01);  // the streams do differ
}

TEST_CASE("mhc design: keeps its invariant, H_res keeps the sum of the streams", "[residual]") {
  for (const int n : {2, 3, 4}) {
    Chain c(mhc(n), 7, 5, 6);
    c.randomize();
    for (int k = 0; k < 6; ++k) {  // no writes
      for (int i = 0; i < 5 * n * (n * n + 2 * n); ++i) if (i % (n * n + 2 * n) / n == 1) c.find(connection(k) + "phi")[i] = 0;
      for (int s = 0; s < n; ++s) c.find(connection(k) + "b")[n + s] = -60;
    }
    CHECK(error_of(copy_of(c.run()), c.b.values(0)) < 6 * 2e-6);
  }
}

TEST_CASE("mhc design: both verbs at once are the two one after the other, kept or recomputed", "[residual]") {
  for (const int n : {2, 3, 4}) {
    Chain c(mhc(n), 19, 5, 6);
    c.randomize();
    const auto kept = c.gradients(Verbs::advance, Keep::everything);
    CHECK((c.gradients(Verbs::advance, Keep::recomputed) == kept));
    CHECK(largest(c.gradients(Verbs::write_then_read, Keep::everything), kept) < 1e-12);
  }
}

TEST_CASE("mhc design: names, decay, head and initial scale", "[residual]") {
  Chain c(mhc(4), 1, 6, 2);
  auto& p = c.b.parameters;
  for (const int k : {0, 1}) {
    CHECK(p[connection(k) + "phi"].shape == Shape{24, 24});
    CHECK(p[connection(k) + "phi"].decay == Decay::yes);
    CHECK(p[connection(k) + "b"].shape == Shape{24});
    for (const auto* name : {"alpha_pre", "alpha_post", "alpha_res"}) CHECK(p[connection(k) + name].shape == Shape{});
    for (const auto* name : {"b", "alpha_pre", "alpha_post", "alpha_res"}) CHECK(p[connection(k) + name].decay == Decay::no);
  }
  CHECK(p.find("blocks.0.attention_hyper_connection.phi"));
  CHECK(p.find("blocks.0.feed_forward_hyper_connection.phi"));
  CHECK(p.numel(Part::residual) == 2 * (24 * 24 + 24 + 3));
  CHECK(c.design->head_eps({6, 2, 0.25, 0}) == 0.25);
  CHECK(c.design->init_scale(Weight::out) == 0.5);
  CHECK(c.design->init_scale(Weight::w2) == 0.5);
  for (const auto w : {Weight::q, Weight::k, Weight::v, Weight::w1, Weight::w3}) CHECK(c.design->init_scale(w) == 1);
  CHECK(Design().init_scale(Weight::out) == 0.5);  // four streams unless told otherwise
}

TEST_CASE("mhc design: rejects wrong options, saying which", "[residual]") {
  CHECK_THROWS_AS(mhc(0), config_error);
  CHECK_THROWS_WITH(mhc(0), "residual design: n_streams is 0, needs a whole number from 1 to 8");
  CHECK_THROWS_WITH(mhc(9), "residual design: n_streams is 9, needs a whole number from 1 to 8");
  CHECK_THROWS_WITH(mhc(4, 0), "residual design: sinkhorn_iters is 0, needs a whole number from 1 to 64");
  CHECK_THROWS_WITH(mhc(4, 65), "residual design: sinkhorn_iters is 65, needs a whole number from 1 to 64");
  CHECK_THROWS_WITH(Design({{"streams", 2}}), "residual design mhc has no option streams");
}
