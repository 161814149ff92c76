#include "depthbench/op/layer_norm.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// x' = g (s - mean s) / sqrt(var s + eps), s = alpha x + y; var divides by d
template <class R> std::vector<double> naive(const std::vector<R>& x, const std::vector<R>& y, const std::vector<R>& g, double eps, double alpha) {
  std::vector<double> out;
  const std::size_t d = g.size();
  for (std::size_t t = 0; t < x.size() / d; ++t) {
    std::vector<double> s;
    double mean = 0, var = 0;
    for (std::size_t c = 0; c < d; ++c) {
      s.push_back(alpha * double(x[t * d + c]) + double(y[t * d + c]));
      mean += s.back() / double(d);
    }
    for (const double a : s) var += (a - mean) * (a - mean) / double(d);
    for (std::size_t c = 0; c < d; ++c) out.push_back(double(g[c]) * (s[c] - mean) / std::sqrt(var + eps));
  }
  return out;
}

}  // namespace

TEST_CASE("add_layer_norm: equals its formula, eps inside the root, variance divided by d", "[op]") {
  for (const int d : {1, 2, 5, 8, 13, 16, 17, 33, 64, 100}) for (const double eps : {1e-6, 0.5}) for (const double alpha : {1.0, 2.3}) {
    Bench<double> b({{19, d}, {19, d}, {d}});
    const auto y = add_layer_norm(b.var(0), b.var(1), b.var(2), eps, alpha);
    CAPTURE(d, eps, alpha);
    CHECK(error_of(y.values(), naive(b.values(0), b.values(1), b.values(2), eps, alpha)) < 1e-13);
    b.tape.clear();
    if (d != 2 || eps > 0.1)  // two channels and a small eps: the result is +-g, a step
      CHECK(b.check([&] { return probe(add_layer_norm(b.var(0), b.var(1), b.var(2), eps, alpha)); }).worst < 1e-7);
    Bench<float> f({{19, d}, {19, d}, {d}});
    const auto z = add_layer_norm(f.var(0), f.var(1), f.var(2), eps, alpha);
    const auto exact = naive(f.values(0), f.values(1), f.values(2), eps, alpha);
    CHECK(error_of(z.values(), exact) < (d == 2 ? 1e-4 : 4e-6));  // a mean that nearly cancels the row: of two channels both
  }
}

TEST_CASE("add_layer_norm: alpha = 1 is Post-LN, the norm of the sum", "[op]") {
  for (const int d : {5, 16, 33}) {
    Bench<double> b({{19, d}, {19, d}, {d}});
    const auto zero = std::vector<double>(std::size_t(19 * d));
    const auto sum = copy_of(add(b.var(0), b.var(1)));
    const auto y = add_layer_norm(b.var(0), b.var(1), b.var(2), 1e-3, 1);
    CHECK(error_of(y.values(), naive(sum, zero, b.values(2), 1e-3, 1)) < 1e-13);
    b.tape.clear();
  }
}

TEST_CASE("add_layer_norm: a number added to every channel of the input changes nothing, the output has no mean", "[op]") {
  Bench<double> b({{4, 13}, {4, 13}, {13}});
  for (int c = 0; c < 13; ++c) b.at(2).value[c] = 1;
  const auto before = copy_of(add_layer_norm(b.var(0), b.var(1), b.var(2), 1e-6, 2));
  for (int i = 0; i < 4 * 13; ++i) b.at(1).value[i] += 5;
  const auto after = copy_of(add_layer_norm(b.var(0), b.var(1), b.var(2), 1e-6, 2));
  CHECK(error_of(after, before) < 1e-13);
  for (int t = 0; t < 4; ++t) {
    double sum = 0, square = 0;
    for (int c = 0; c < 13; ++c) {
      sum += before[std::size_t(t * 13 + c)];
      square += before[std::size_t(t * 13 + c)] * before[std::size_t(t * 13 + c)];
    }
    CHECK(std::fabs(sum) < 1e-13);
    CHECK(square / 13 == Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("add_layer_norm: constant rows give zeros and finite gradients", "[op]") {
  Bench<double> b({{2, 9}, {2, 9}, {9}});
  for (int i = 0; i < 18; ++i) b.at(0).value[i] = b.at(1).value[i] = 3;
  const auto y = add_layer_norm(b.var(0), b.var(1), b.var(2), 1e-6, 1);
  for (const double v : y.values()) CHECK(std::fabs(v) < 1e-9);
  b.tape.backward(probe(y));
  for (int i = 0; i < 3; ++i) for (const double g : b.grads(i)) CHECK(std::isfinite(g));
}

TEST_CASE("add_layer_norm: float keeps its digits far from zero", "[op]") {
  // The mean is subtracted before squares are summed: with mean(x^2) - mean(x)^2 nothing would be left of the variance.
  Bench<float> f({{19, 64}, {19, 64}, {64}});
  for (int i = 0; i < 19 * 64; ++i) f.at(1).value[i] += 1000;
  const auto y = add_layer_norm(f.var(0), f.var(1), f.var(2), 1e-6, 1);
  CHECK(error_of(y.values(), naive(f.values(0), f.values(1), f.values(2), 1e-6, 1)) < 1000 * 0x1p-21);
}

TEST_CASE("add_layer_norm: rejects wrong shapes, saying which", "[op]") {
  Bench<double> b({{2, 8}, {7}, {2, 7}, {8}});
  CHECK_THROWS_AS(add_layer_norm(b.var(0), b.var(2), b.var(3), 1e-6, 1), shape_error);
  CHECK_THROWS_WITH(add_layer_norm(b.var(0), b.var(2), b.var(3), 1e-6, 1), "add_layer_norm: y has shape (2, 7), needs (2, 8)");
  CHECK_THROWS_WITH(add_layer_norm(b.var(0), b.var(0), b.var(1), 1e-6, 1), "add_layer_norm: g has shape (7), needs (8)");
}
