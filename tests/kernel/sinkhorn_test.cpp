// Sinkhorn in packs of tokens against plain loops in long double, and its reverse step against derivatives carried along.
#include <array>
#include <cmath>
#include <vector>

#include "depthbench/kernel/mhc.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

using Wide = long double;
constexpr double eps = 1e-6;

// A number with its derivatives along all inputs.
struct Dual {
  Wide x = 0;
  std::vector<Wide> d;
};
Dual operator+(Dual a, const Dual& b) {
  a.x += b.x;
  for (std::size_t i = 0; i < a.d.size(); ++i) a.d[i] += b.d[i];
  return a;
}
Dual operator/(Dual a, const Dual& b) {
  const Wide q = a.x / b.x;
  for (std::size_t i = 0; i < a.d.size(); ++i) a.d[i] = (a.d[i] - q * b.d[i]) / b.x;
  a.x = q;
  return a;
}

struct Naive {
  std::vector<Dual> h;  // (n, n)
  // z (n, n): softmax of rows, + eps, columns; then iterations - 1 times rows and columns
  Naive(const std::vector<double>& z, int n, int iterations) : h(z.size()) {
    for (int o = 0; o < n; ++o) {
      Wide top = z[std::size_t(o * n)], sum = 0;
      for (int i = 0; i < n; ++i) top = std::max(top, Wide(z[std::size_t(o * n + i)]));
      for (int i = 0; i < n; ++i) sum += std::exp(Wide(z[std::size_t(o * n + i)]) - top);
      const auto p = [&](int i) { return std::exp(Wide(z[std::size_t(o * n + i)]) - top) / sum; };
      for (int i = 0; i < n; ++i) {
        Dual& y = h[std::size_t(o * n + i)];
        y.x = p(i) + Wide(eps);
        y.d.assign(z.size(), 0);
        for (int j = 0; j < n; ++j) y.d[std::size_t(o * n + j)] = p(i) * (Wide(i == j) - p(j));
      }
    }
    for (int t = 0; t < iterations; ++t) {
      if (t > 0) divide(n, n, 1);
      divide(n, 1, n);
    }
  }
  // Elements line * a + k * b of every line divided by their sum + eps.
  void divide(int n, int a, int b) {
    for (int line = 0; line < n; ++line) {
      Dual sum{Wide(eps), std::vector<Wide>(h.size())};
      for (int k = 0; k < n; ++k) sum = sum + h[std::size_t(line * a + k * b)];
      for (int k = 0; k < n; ++k) h[std::size_t(line * a + k * b)] = h[std::size_t(line * a + k * b)] / sum;
    }
  }
  std::vector<double> values() const {
    std::vector<double> v;
    for (const auto& y : h) v.push_back(double(y.x));
    return v;
  }
  std::vector<double> gradient(const std::vector<double>& g) const {
    std::vector<double> dz(h.size());
    for (std::size_t j = 0; j < h.size(); ++j) {
      Wide sum = 0;
      for (std::size_t i = 0; i < h.size(); ++i) sum += Wide(g[i]) * h[i].d[j];
      dz[j] = double(sum);
    }
    return dz;
  }
};

struct Result {
  std::vector<double> h, dz;
};
// The same matrix in every lane but the first, which holds another one: lanes do not mix.
template <int n, class R> Result kernel(const std::vector<double>& z, const std::vector<double>& g, int iterations) {
  using P = cpu_pack<R>;
  P logits[n][n], grad[n][n];
  for (int o = 0; o < n; ++o) for (int i = 0; i < n; ++i) {
    logits[o][i] = P::splat(R(z[std::size_t(o * n + i)]));
    grad[o][i] = P::splat(R(g[std::size_t(o * n + i)]));
    logits[o][i].set(0, R(o + 2 * i));
  }
  SinkhornDivisors<n, P> divisors;
  Sinkhorn<n, P> s(logits, iterations, R(eps), &divisors);
  Result r;
  for (int o = 0; o < n; ++o) for (int i = 0; i < n; ++i) r.h.push_back(double(s.y[o][i].get(1)));
  s.reverse(grad);
  for (int o = 0; o < n; ++o) for (int i = 0; i < n; ++i) r.dz.push_back(double(grad[o][i].get(1)));
  return r;
}
template <class F> void for_each_n(F f) {
  f.template operator()<1>();
  f.template operator()<2>();
  f.template operator()<3>();
  f.template operator()<4>();
  f.template operator()<5>();
  f.template operator()<6>();
  f.template operator()<7>();
  f.template operator()<8>();
}

// Logits at +-80 in a pattern that is far from any permutation.
std::vector<double> saturated(int n) {
  std::vector<double> z;
  for (int o = 0; o < n; ++o) for (int i = 0; i < n; ++i) z.push_back((o * i + o / 2) % 3 == 0 ? 80 : -80);
  return z;
}
double largest_of(const std::vector<double>& v) {
  double m = 0;
  for (const double x : v) m = std::max(m, std::fabs(x));
  return m;
}

}  // namespace

TEST_CASE("sinkhorn: equals plain loops, values and gradients, for every number of streams and of iterations", "[kernel]") {
  for_each_n([]<int n>() {
    const auto g = random_numbers(std::size_t(n * n), 3);
    for (const int iterations : {1, 2, 5, 20, 64}) for (const double size : {0.01, 1.0, 4.0}) {
      const auto z = random_numbers(std::size_t(n * n), 2, size);
      const Naive needs(z, n, iterations);
      const auto has = kernel<n, double>(z, g, iterations);
      CAPTURE(n, iterations, size);
      CHECK(error_of(has.h, needs.values()) < 1e-13);
      const double scale = std::max(largest_of(needs.gradient(g)), 1e-3 * largest_of(g));
      CHECK(error_of(has.dz, needs.gradient(g)) * largest_of(needs.gradient(g)) / scale < 1e-10);
    }
  });
}

TEST_CASE("sinkhorn: saturated logits give finite and right values and gradients, float included", "[kernel]") {
  for_each_n([]<int n>() {
    const auto g = random_numbers(std::size_t(n * n), 4);
    for (const int iterations : {1, 5, 20, 64}) for (const double far : {80.0, 320.0}) {  // beyond 88 e^z is no float
      auto diagonal = std::vector<double>(std::size_t(n * n), -far), pattern = saturated(n);
      for (int i = 0; i < n; ++i) diagonal[std::size_t(i * n + i)] = far;
      for (double& z : pattern) z *= far / 80;
      for (const auto& z : {pattern, diagonal, std::vector<double>(std::size_t(n * n), far), std::vector<double>(std::size_t(n * n), -far)}) {
        const Naive needs(z, n, iterations);
        const auto exact = needs.gradient(g);
        const auto wide = kernel<n, double>(z, g, iterations), narrow = kernel<n, float>(z, g, iterations);
        CAPTURE(n, iterations, exact, wide.dz, narrow.dz);
        for (const auto* r : {&wide, &narrow}) for (const auto* v : {&r->h, &r->dz}) for (const double x : *v) REQUIRE(std::isfinite(x));
        CHECK(error_of(wide.h, needs.values()) < 1e-13);
        CHECK(error_of(narrow.h, needs.values()) < 2 * iterations * (n + 2) * 0x1p-23);  // each half step: n additions, a division
        // gradients are compared with the size of what flows in: they may vanish
        for (std::size_t i = 0; i < exact.size(); ++i) {
          CHECK(std::fabs(wide.dz[i] - exact[i]) < 1e-10 * largest_of(g));
          CHECK(std::fabs(narrow.dz[i] - exact[i]) < 8 * iterations * (n + 2) * 0x1p-23 * largest_of(g));
        }
      }
    }
  });
}

TEST_CASE("sinkhorn: two by two, against the solution on paper", "[kernel]") {
  // logits ((0, 1), (2, 0)): the limit is ((a, 1 - a), (1 - a, a)) with a / (1 - a) = e^(-3/2)
  const auto h = kernel<2, double>({0, 1, 2, 0}, {0, 0, 0, 0}, 64).h;
  CHECK(h[0] == Approx(0.1824255).margin(3e-6));
  CHECK(h[3] == Approx(h[0]).margin(3e-6));
  CHECK(h[1] == Approx(1 - h[0]).margin(3e-6));
}

TEST_CASE("sinkhorn: one stream is 1 up to eps", "[kernel]") {
  for (const double z : {-80.0, 0.0, 3.0, 80.0}) {
    const auto r = kernel<1, double>({z}, {1.0}, 20);
    CHECK(r.h[0] == Approx(1).margin(2e-6));
    CHECK(r.dz[0] == 0);
  }
}

TEST_CASE("sinkhorn: columns sum to 1 up to eps, rows as far as it has converged", "[kernel]") {
  for_each_n([]<int n>() {
    const auto z = random_numbers(std::size_t(n * n), 6);
    double row_error[2] = {0, 0};
    for (const int few : {0, 1}) {
      const auto h = kernel<n, double>(z, z, few ? 2 : 64).h;
      for (int i = 0; i < n; ++i) {
        double column = 0, row = 0;
        for (int o = 0; o < n; ++o) {
          column += h[std::size_t(o * n + i)];
          row += h[std::size_t(i * n + o)];
        }
        CHECK(column == Approx(1).margin(2e-6));
        row_error[few] = std::max(row_error[few], std::fabs(row - 1));
      }
    }
    CAPTURE(n);
    CHECK(row_error[0] < 1e-5);
    if (n > 1) CHECK(row_error[1] > row_error[0]);
  });
}

TEST_CASE("sinkhorn: a number added to a row or a column of the logits changes nothing once converged", "[kernel]") {
  const auto z = random_numbers(16, 7);
  auto rows = z, columns = z;
  for (int i = 0; i < 4; ++i) {
    rows[std::size_t(4 + i)] += 1.5;
    columns[std::size_t(4 * i + 2)] -= 0.7;
  }
  const auto h = kernel<4, double>(z, z, 64).h;
  CHECK(error_of(kernel<4, double>(rows, z, 64).h, h) < 1e-14);  // the softmax of the row removes it
  CHECK(error_of(kernel<4, double>(columns, z, 64).h, h) < 1e-5);
  CHECK(error_of(kernel<4, double>(columns, z, 1).h, kernel<4, double>(z, z, 1).h) > 1e-2);
}

TEST_CASE("sinkhorn: rows are destinations, the first step normalises rows and the last columns", "[kernel]") {
  // One iteration by hand: rows by softmax, then columns.
  const double e = std::exp(1.0);
  const auto h = kernel<2, double>({1, 0, 0, 0}, {0, 0, 0, 0}, 1).h;
  const double a = e / (1 + e) + eps, b = 1 / (1 + e) + eps, c = 0.5 + eps;
  CHECK(h[0] == Approx(a / (a + c + eps)).epsilon(1e-14));
  CHECK(h[1] == Approx(b / (b + c + eps)).epsilon(1e-14));
  CHECK(h[2] == Approx(c / (a + c + eps)).epsilon(1e-14));
  CHECK(h[3] == Approx(c / (b + c + eps)).epsilon(1e-14));
}

TEST_CASE("sinkhorn: the gradient of the logits has no row sums, and no column sums once converged", "[kernel]") {
  const auto dz = kernel<4, double>(random_numbers(16, 8), random_numbers(16, 9), 64).dz;
  for (int o = 0; o < 4; ++o) {
    double row = 0, column = 0;
    for (int i = 0; i < 4; ++i) {
      row += dz[std::size_t(4 * o + i)];
      column += dz[std::size_t(4 * i + o)];
    }
    CHECK(std::fabs(row) < 1e-14);
    CHECK(std::fabs(column) < 1e-5);
  }
}
