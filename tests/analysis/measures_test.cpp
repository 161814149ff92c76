// The small measures: intervals, singular values, ranks, strong pairs, samples.
#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/sample.hpp"
#include "depthbench/analysis/singular_values.hpp"
#include "depthbench/analysis/strong_fraction.hpp"
#if DEPTHBENCH_HAS_LAPACK
#include "depthbench/analysis/lapack.hpp"
#endif
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("estimate: mean and interval of equal weights are the textbook's") {
  Estimate e;
  CHECK(std::isnan(e.mean()));
  for (const double x : {1.0, 4.0, 2.0, 7.0}) e.add(x);
  CHECK(e.mean() == Approx(3.5));
  CHECK(e.half_width() == Approx(1.96 * std::sqrt((2.5 * 2.5 + 0.5 * 0.5 + 1.5 * 1.5 + 3.5 * 3.5) / 3 / 4)));
}

TEST_CASE("estimate: weights count as often as they say") {
  Estimate e;
  e.add(1, 3);
  e.add(5, 1);
  e.add(9, 0);
  CHECK(e.mean() == Approx(2));
}

TEST_CASE("singular values: of a matrix with known ones, to full precision") {
  const double c = std::cos(0.3), s = std::sin(0.3);  // rotation x diag(5, 1e-9) x rotation'
  const auto v = singular_values({5 * c * c + 1e-9 * s * s, 5 * c * s - 1e-9 * c * s, 5 * c * s - 1e-9 * c * s, 5 * s * s + 1e-9 * c * c}, 2, 2);
  CHECK(v[0] == Approx(5).epsilon(1e-14));
  CHECK(v[1] == Approx(1e-9).epsilon(1e-5));
  CHECK(singular_values({0, -2, 3, 0, 0, 0}, 3, 2) == std::vector<double>{3, 2});
}

TEST_CASE("effective rank: from one direction to as many as there are") {
  CHECK(effective_rank(std::vector<double>{2, 2, 2, 2}) == Approx(4));
  CHECK(effective_rank(std::vector<double>{2, 0, 0}) == Approx(1));
  CHECK(stable_rank(std::vector<double>{2, 1, 1}) == Approx(1.5));
}

#if DEPTHBENCH_HAS_LAPACK
TEST_CASE("lapack: singular values agree with Jacobi's, least squares solves") {
  const auto a = random_numbers(7 * 5, 3);
  auto jacobi = singular_values(a, 5, 7);  // row-major 5 x 7 is column-major 7 x 5; two of the seven are zero
  jacobi.resize(5);
  CHECK(error_of(lapack::singular_values(a, 7, 5), jacobi) < 1e-13);
  const auto x = random_numbers(5 * 2, 4);
  std::vector<double> b(7 * 2);
  for (int j = 0; j < 2; ++j) for (int i = 0; i < 7; ++i) for (int k = 0; k < 5; ++k) b[std::size_t(j * 7 + i)] += a[std::size_t(k * 7 + i)] * x[std::size_t(j * 5 + k)];
  CHECK(error_of(lapack::least_squares(a, b, 7, 5, 2), x) < 1e-12);
}
#endif

TEST_CASE("strong fraction: late pairs of 32 blocks are 276, or all but those of the first quarter") {
  const std::vector<double> none(32 * 32, 0.0);
  CHECK(strong_fraction(none, 32, 0.1).pairs == 276);
  CHECK(strong_fraction(none, 32, 0.1, Late::either).pairs == 496 - 28);
  std::vector<double> one = none;
  one[8 * 32 + 9] = 0.2;
  one[7 * 32 + 9] = 0.2;
  CHECK(strong_fraction(one, 32, 0.1).strong == 1);
  CHECK(strong_fraction(one, 32, 0.1, Late::either).strong == 2);
  CHECK(strong_fraction(one, 32, 0.2).strong == 0);
}

TEST_CASE("sample: windows lie inside the ranges, repeat for a seed, and end without a label") {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(i);
  const Corpus corpus = corpus_from_tokens(ids);
  const std::vector<TokenRange> held{{700, 720}};
  const Sample a = draw_sample(corpus, held, 40, 8, 1), b = draw_sample(corpus, held, 40, 8, 1), c = draw_sample(corpus, held, 40, 8, 2);
  CHECK(a.tokens == b.tokens);
  CHECK(a.tokens != c.tokens);
  std::vector<int> starts(13, 0);
  for (int w = 0; w < 40; ++w) for (int t = 0; t < 8; ++t) {
    const auto i = std::size_t(w * 8 + t);
    CHECK(a.tokens[i] >= 700);
    CHECK(a.tokens[i] < 720);
    CHECK(a.targets[i] == (t == 7 ? ignored_target : a.tokens[i] + 1));
    if (t == 0) ++starts[std::size_t(a.tokens[i] - 700)];
  }
  CHECK(std::count(starts.begin(), starts.end(), 0) < 4);  // of 13 places, 40 draws
  CHECK_THROWS_WITH(draw_sample(corpus, held, 1, 21, 1), Catch::Contains("windows of 21 tokens are asked for, the text has 20"));
}
