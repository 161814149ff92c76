#include "depthbench/op/rms_norm.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {
template <class R> std::vector<double> naive(const std::vector<R>& x, const std::vector<R>& g, double eps) {
  std::vector<double> y;
  const std::size_t d = g.size();
  for (std::size_t t = 0; t < x.size() / d; ++t) {
    double square = 0;
    for (std::size_t c = 0; c < d; ++c) square += double(x[t * d + c]) * double(x[t * d + c]);
    for (std::size_t c = 0; c < d; ++c)
      y.push_back(double(g[c]) * double(x[t * d + c]) / std::sqrt(square / double(d) + eps));
  }
  return y;
}
}  // namespace

TEST_CASE("rms_norm: equals its formula, eps inside the root", "[op]") {
  for (const int d : {1, 2, 5, 8, 13, 16, 17, 33, 64, 100}) for (const double eps : {1e-6, 0.5}) {
    Bench<double> b({{19, d}, {d}});
    const auto y = rms_norm(b.var(0), b.var(1), eps);
    CHECK(error_of(y.values(), naive(b.values(0), b.values(1), eps)) < 1e-14);
    b.tape.clear();
    CHECK(b.check([&] { return probe(rms_norm(b.var(0), b.var(1), eps)); }).worst < 1e-7);
    Bench<float> f({{19, d}, {d}});
    const auto z = rms_norm(f.var(0), f.var(1), eps);
    CHECK(error_of(z.values(), naive(f.values(0), f.values(1), eps)) < 1e-6);
  }
}

TEST_CASE("rms_norm: gradients of several uses of a gain add up", "[op]") {
  Bench<double> b({{5, 12}, {12}});
  CHECK(b.check([&] { return probe(rms_norm(rms_norm(b.var(0), b.var(1), 1e-6), b.var(1), 1e-6)); }).worst < 1e-7);
}

TEST_CASE("rms_norm: a row of zeros gives zeros and finite gradients", "[op]") {
  Bench<double> b({{2, 8}, {8}});
  std::fill(b.at(0).value, b.at(0).value + 8, 0.0);
  const auto y = rms_norm(b.var(0), b.var(1), 1e-6);
  for (int c = 0; c < 8; ++c) CHECK(y.values()[std::size_t(c)] == 0);
  b.tape.backward(probe(y));
  for (const double g : b.grads(0)) CHECK(std::isfinite(g));
}

TEST_CASE("add_rms_norm: equals the addition and the norm, one after the other", "[op]") {
  for (const int d : {3, 16, 33}) {
    Bench<double> b({{19, d}, {19, d}, {d}});
    const auto [x, u] = add_rms_norm(b.var(0), b.var(1), b.var(2), 1e-3);
    const auto sum = add(b.var(0), b.var(1));
    CHECK(copy_of(x) == copy_of(sum));
    CHECK(error_of(u.values(), naive(copy_of(sum), b.values(2), 1e-3)) < 1e-14);
    b.tape.clear();
    CHECK(b.check([&] {
      const auto [next, v] = add_rms_norm(b.var(0), b.var(1), b.var(2), 1e-3);
      return add(probe(next, 1), probe(v, 2));
    }).worst < 1e-7);
    CHECK(b.check([&] { return probe(add_rms_norm(b.var(0), b.var(1), b.var(2), 1e-3)[0]); }).worst <
          1e-7);  // u unused
    CHECK(b.check([&] { return probe(add_rms_norm(b.var(0), b.var(1), b.var(2), 1e-3)[1]); }).worst < 1e-7);
  }
}

TEST_CASE("rms_norm: rejects wrong shapes, saying which", "[op]") {
  Bench<double> b({{2, 8}, {7}, {2, 7}, {8}});
  CHECK_THROWS_AS(rms_norm(b.var(0), b.var(1), 1e-6), shape_error);
  CHECK_THROWS_WITH(rms_norm(b.var(0), b.var(1), 1e-6), "rms_norm: g has shape (7), needs (8)");
  CHECK_THROWS_WITH(add_rms_norm(b.var(0), b.var(2), b.var(3), 1e-6),
                    "add_rms_norm: y has shape (2, 7), needs (2, 8)");
  CHECK_THROWS_WITH(add_rms_norm(b.var(0), b.var(0), b.var(1), 1e-6),
                    "add_rms_norm: g has shape (7), needs (8)");
}
