#include "depthbench/core/rng.hpp"

#include <algorithm>
#include <set>

#include "tests/catch.hpp"

using namespace depthbench;

namespace {

using Block = std::array<std::uint32_t, 4>;

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0;
};
template <class F> Moments moments(int n, F f) {
  Moments m;
  for (int i = 0; i < n; ++i) m.mean += f(i) / n;
  for (int i = 0; i < n; ++i) {
    const double x = f(i) - m.mean;
    m.variance += x * x / n;
    m.kurtosis += x * x * x * x / n;
  }
  m.kurtosis /= m.variance * m.variance;
  return m;
}

}  // namespace

// The philox4x32 lines of 10 rounds in kat_vectors, the test data of Random123 (D. E. Shaw Research): counter
// words 0 to 3 are our index and stream, key words our seed, low half first.
TEST_CASE("rng: the known answers of Philox 4x32-10", "[core]") {
  CHECK(Rng(0, 0).block(0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Rng(~0ull, ~0ull).block(~0ull) == Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Rng(0x299f31d0a4093822, 0x0370734413198a2e).block(0x85a308d3243f6a88) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("rng: a number depends on seed, stream and index alone", "[core]") {
  const Rng a(7, 3), same(7, 3);
  std::vector<std::uint64_t> forward, backward;
  for (int i = 0; i < 100; ++i) forward.push_back(a.bits(std::uint64_t(i)));
  for (int i = 99; i >= 0; --i) backward.push_back(same.bits(std::uint64_t(i)));
  std::reverse(backward.begin(), backward.end());
  CHECK(forward == backward);
  CHECK(std::set<std::uint64_t>(forward.begin(), forward.end()).size() == 100);
  CHECK(a.bits(0) != Rng(8, 3).bits(0));
  CHECK(a.bits(0) != Rng(7, 4).bits(0));
  std::set<std::uint64_t> purposes;
  for (std::uint64_t p = 0; p < 1000; ++p) purposes.insert(a.split(p).bits(0));
  CHECK(purposes.size() == 1000);
  CHECK(a.split(1).split(2).bits(0) != a.split(2).split(1).bits(0));
}

TEST_CASE("rng: uniform numbers", "[core]") {
  const int n = 200000;
  const Rng rng(1);
  const auto m = moments(n, [&](int i) { return rng.uniform(std::uint64_t(i)); });
  const double sigma = 1 / std::sqrt(12.0 * n);
  CHECK(std::fabs(m.mean - 0.5) < 4 * sigma);
  CHECK(m.variance == Approx(1 / 12.0).epsilon(0.01));
  for (int i = 0; i < n; ++i) {
    const double u = rng.uniform(std::uint64_t(i));
    if (!(u > 0 && u < 1)) FAIL("uniform is " << u);
  }
}

TEST_CASE("rng: whole numbers below a bound are equally frequent", "[core]") {
  const Rng rng(5);
  std::vector<int> count(7);
  const int n = 70000;
  for (int i = 0; i < n; ++i) {
    const auto k = rng.below(std::uint64_t(i), 7);
    REQUIRE(k < 7);
    ++count[std::size_t(k)];
  }
  double chi2 = 0;
  for (const int c : count) chi2 += (c - n / 7.0) * (c - n / 7.0) / (n / 7.0);
  CHECK(chi2 < 22.5);  // 6 degrees of freedom: exceeded once in 1000 seeds
  CHECK(rng.below(0, 1) == 0);
  CHECK(rng.below(3, ~0ull) < ~0ull);
}

TEST_CASE("rng: normal numbers", "[core]") {
  const int n = 200000;
  const Rng rng(2);
  const auto m = moments(n, [&](int i) { return rng.normal(std::uint64_t(i)); });
  CHECK(std::fabs(m.mean) < 4 / std::sqrt(double(n)));
  CHECK(m.variance == Approx(1).epsilon(0.015));
  CHECK(m.kurtosis == Approx(3).epsilon(0.03));
  int beyond = 0;
  for (int i = 0; i < n; ++i) beyond += std::fabs(rng.normal(std::uint64_t(i))) > 1.959964;
  CHECK(double(beyond) / n == Approx(0.05).epsilon(0.04));
}

TEST_CASE("rng: truncated normal numbers stay within their bound and fill it", "[core]") {
  const int n = 100000;
  const Rng rng(3);
  double largest = 0;
  for (int i = 0; i < n; ++i)
    largest = std::max(largest, std::fabs(rng.truncated_normal(std::uint64_t(i), 3)));
  CHECK(largest <= 3);
  CHECK(largest > 2.95);
  // variance of a normal cut off at b: 1 - 2 b phi(b) / (2 Phi(b) - 1)
  const auto m = moments(n, [&](int i) { return rng.truncated_normal(std::uint64_t(i), 3); });
  CHECK(std::fabs(m.mean) < 4 / std::sqrt(double(n)));
  CHECK(m.variance == Approx(0.97333).epsilon(0.015));
  const auto narrow = moments(n, [&](int i) { return rng.truncated_normal(std::uint64_t(i), 1); });
  CHECK(narrow.variance == Approx(0.29112).epsilon(0.015));
}

TEST_CASE("rng: shuffled is a permutation, each order as likely", "[core]") {
  auto order = shuffled(1000, Rng(1));
  CHECK(order == shuffled(1000, Rng(1)));
  CHECK(order != shuffled(1000, Rng(2)));
  CHECK_FALSE(std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (std::uint64_t i = 0; i < 1000; ++i) REQUIRE(order[i] == i);
  CHECK(shuffled(0, Rng(1)).empty());
  CHECK(shuffled(1, Rng(1)) == std::vector<std::uint64_t>{0});
  std::vector<int> count(6);
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    const auto o = shuffled(3, Rng(seed));
    ++count[std::size_t(o[0] * 2 + (o[1] > o[2]))];
  }
  double chi2 = 0;
  for (const int c : count) chi2 += (c - 1000.0) * (c - 1000.0) / 1000.0;
  CHECK(chi2 < 20.5);  // 5 degrees of freedom: once in 1000
}
