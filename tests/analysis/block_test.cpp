// What is measured of single blocks: Jacobians, affine replacement, collapse, angles.
#include "depthbench/analysis/angular_distance.hpp"
#include "depthbench/analysis/jacobian.hpp"
#if DEPTHBENCH_HAS_LAPACK
#include "depthbench/analysis/token_collapse.hpp"
#include "depthbench/analysis/usefulness.hpp"
#endif
#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/hc.hpp"
#include "depthbench/residual/moda.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "tests/analysis/model.hpp"
#include "tests/catch.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

template <class A> void silence(A& a, const std::string& block) {  // its output matrices become zero: the identity
  for (auto& p : a.model_parameters())
    if (p.name.starts_with(block) && (p.name.ends_with("w_out.weight") || p.name.ends_with("w2.weight"))) std::fill(p.value, p.value + p.numel(), 0.0);
}

}  // namespace

TEST_CASE("jacobian: a silent block is the identity, the others agree with finite differences") {
  Analyzed<Moda> a(3);
  silence(a, "blocks.1.");
  const auto deviation = jacobian_deviation(a.model, a.tape, a.sample);
  REQUIRE(deviation);
  CHECK((*deviation)[1] < 1e-14);
  // block 2 by central differences: every position's channel i moves together at one position at a time
  const int N = 18, d = 8;
  double sum = 0;
  std::vector<double> j(std::size_t(d * d));
  const auto ends = [&](int at, double step) {  // sums over positions of each output channel
    std::vector<double> s(std::size_t(d), 0.0);
    without_trace(a.tape, [&] {
      auto pass = a.begin();
      while (pass.block() < 2) pass.step();
      auto z = a.tape.host(pass.state());
      z[std::size_t(at)] += step;
      REQUIRE(pass.replace(a.tape.constant(z.data(), {N, d})));
      pass.step();
      const auto out = a.tape.host(pass.state());
      for (std::size_t i = 0; i < out.size(); ++i) s[i % std::size_t(d)] += out[i];
    });
    a.tape.clear();
    return s;
  };
  const double h = 1e-5;
  for (int t = 0; t < N; ++t) for (int i = 0; i < d; ++i) {
    const auto up = ends(t * d + i, h), down = ends(t * d + i, -h);
    for (int c = 0; c < d; ++c) j[std::size_t(c * d + i)] += (up[std::size_t(c)] - down[std::size_t(c)]) / (2 * h) / N;
  }
  for (int c = 0; c < d; ++c) for (int i = 0; i < d; ++i) sum += (j[std::size_t(c * d + i)] - (c == i)) * (j[std::size_t(c * d + i)] - (c == i));
  CHECK((*deviation)[2] == Approx(std::sqrt(sum / d)).epsilon(1e-7));
  Analyzed<AttnRes> b(2);
  CHECK(!jacobian_deviation(b.model, b.tape, b.sample));
}

TEST_CASE("angular distance: a silent block moves nothing, and distances are of directions") {
  Analyzed<PreLn> a(3);
  silence(a, "blocks.1.");
  const auto d = angular_distance(a.model, a.tape, a.sample);
  CHECK(d(1, 2).mean() < 1e-7);
  CHECK(d(0, 1).mean() > 0.01);
  CHECK(d(0, 1).mean() == Approx(d(0, 2).mean()).epsilon(1e-7));
  for (int i = 0; i <= 3; ++i) for (int j = 0; j <= 3; ++j) CHECK((i < j ? d(i, j).mean() >= 0 && d(i, j).mean() <= 1 : !d(i, j).defined()));
}

TEST_CASE("angular distance: the mean over tokens of the angle between states, streams as one vector") {
  Analyzed<Hc> a(2);
  const auto d = angular_distance(a.model, a.tape, a.sample);
  std::vector<HostState<double>> z;
  auto pass = a.begin();
  for (; !pass.done(); pass.step()) z.push_back(host_state(pass.state()));
  z.push_back(host_state(pass.state()));
  for (int i = 0; i <= 2; ++i) for (int j = i + 1; j <= 2; ++j) {
    double mean = 0;
    for (std::size_t t = 0; t < z[0].rows(); ++t) {
      double ab = 0, aa = 0, bb = 0;
      for (std::size_t c = 0; c < z[0].width; ++c) {
        const double x = z[std::size_t(i)].row(t)[c], y = z[std::size_t(j)].row(t)[c];
        ab += x * y;
        aa += x * x;
        bb += y * y;
      }
      mean += std::acos(ab / std::sqrt(aa * bb)) / std::acos(-1.0) / double(z[0].rows());
    }
    CHECK(d(i, j).mean() == Approx(mean).epsilon(1e-10));
  }
}

#if DEPTHBENCH_HAS_LAPACK
TEST_CASE("usefulness: an affine map is fitted with its constant") {
  const int n = 30, width = 4;
  HostState<double> z{random_numbers(std::size_t(n * width), 5), width}, next{std::vector<double>(std::size_t(n * width)), width};
  const auto a = random_numbers(width * width, 6), b = random_numbers(width, 7);
  for (int t = 0; t < n; ++t) for (int c = 0; c < width; ++c) {
    double& y = next.x[std::size_t(t * width + c)] = b[std::size_t(c)];
    for (int i = 0; i < width; ++i) y += a[std::size_t(c * width + i)] * z.row(std::size_t(t))[i];
  }
  const auto map = detail::fit_affine(z, next);
  for (int c = 0; c < width; ++c) {
    CHECK(map[std::size_t(c * (width + 1) + width)] == Approx(b[std::size_t(c)]).margin(1e-12));
    for (int i = 0; i < width; ++i) CHECK(map[std::size_t(c * (width + 1) + i)] == Approx(a[std::size_t(c * width + i)]).margin(1e-12));
  }
}

TEST_CASE("usefulness: an affine map is as good as a silent block, and worse than the others") {
  Analyzed<PreLn> a(3);
  silence(a, "blocks.1.");
  const auto u = usefulness(a.model, a.tape, a.sample);
  REQUIRE(u);
  CHECK(u->ratio(1) == Approx(1).epsilon(1e-10));
  CHECK(std::fabs(u->ratio(0) - 1) > 1e-3);
  Analyzed<AttnRes> b(2);
  CHECK(!usefulness(b.model, b.tape, b.sample));
}

TEST_CASE("token collapse: equal tokens have one direction, others more") {
  Analyzed<PreLn> a(2);
  const auto c = token_collapse(a.model, a.tape, a.sample);
  CHECK(c.stable_rank(0, 0).mean() > 1.2);
  CHECK(c.entropy_rank(0, 0).mean() <= 6);
  const Sample same = next_token_sample(std::vector<std::int32_t>(12, 3), 6);
  const auto one = token_collapse(a.model, a.tape, same);
  CHECK(one.stable_rank(0, 0).mean() == Approx(1).epsilon(1e-12));
  CHECK(one.entropy_rank(0, 0).mean() == Approx(1).epsilon(1e-12));
  CHECK(one.sparsity(0, 0).mean() == Approx(1).epsilon(1e-6));
}
#endif
