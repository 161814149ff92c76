#include "depthbench/op/linear.hpp"

#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("linear: equals y = x W^T", "[op]") {
  for (const auto& [n, in, out] : {std::array{1, 1, 1}, {3, 5, 7}, {40, 33, 17}, {200, 64, 100}}) {
    Bench<double> b({{n, in}, {out, in}});
    std::vector<double> needs(std::size_t(n * out));
    for (int t = 0; t < n; ++t) for (int o = 0; o < out; ++o) for (int i = 0; i < in; ++i)
      needs[std::size_t(t * out + o)] += b.at(0).value[t * in + i] * b.at(1).value[o * in + i];
    const auto y = linear(b.var(0), b.var(1));
    CHECK(y.shape() == Shape{n, out});
    CHECK(error_of(y.values(), needs) < 1e-14);
    b.tape.clear();
    if (n < 100) CHECK(b.check([&] { return probe(linear(b.var(0), b.var(1))); }).worst < 1e-8);
  }
}

TEST_CASE("linear: gradients of several uses add up", "[op]") {
  Bench<double> b({{4, 6}, {6, 6}});
  CHECK(b.check([&] { return probe(linear(linear(b.var(0), b.var(1)), b.var(1))); }).worst < 1e-8);
}

TEST_CASE("linear: float agrees with double", "[op]") {
  Bench<double> b({{50, 96}, {70, 96}});
  Bench<float> f({{50, 96}, {70, 96}});
  const auto y = linear(b.var(0), b.var(1));
  const auto z = linear(f.var(0), f.var(1));
  CHECK(error_of(z.values(), y.values()) < 1e-6);
}

TEST_CASE("linear: rejects a matrix that does not match, saying what it had", "[op]") {
  Bench<double> b({{3, 5}, {7, 4}, {5}});
  CHECK_THROWS_AS(linear(b.var(0), b.var(1)), shape_error);
  CHECK_THROWS_WITH(linear(b.var(0), b.var(1)),
                    "linear: W has shape (7, 4), needs (out, 5) to match x (3, 5)");
  CHECK_THROWS_WITH(linear(b.var(0), b.var(2)), "linear: W has shape (5), needs (out, 5) to match x (3, 5)");
}
