// add, scale and reshape
#include "depthbench/op/add.hpp"

#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("add: equals the sum, and its gradient is the incoming one", "[op]") {
  Bench<double> b({{3, 7}, {3, 7}});
  const auto y = add(b.var(0), b.var(1));
  for (std::size_t i = 0; i < 21; ++i) CHECK(y.values()[i] == b.values(0)[i] + b.values(1)[i]);
  CHECK(y.shape() == Shape{3, 7});
  b.tape.clear();
  CHECK(b.check([&] { return probe(add(b.var(0), b.var(1))); }).worst < 1e-9);
  CHECK_THROWS_AS(add(b.var(0), reshape(b.var(1), {7, 3})), shape_error);
  CHECK_THROWS_WITH(add(b.var(0), reshape(b.var(1), {7, 3})), "add: b has shape (7, 3), needs (3, 7)");
}

TEST_CASE("scale: equals the product, and its gradient is scaled", "[op]") {
  Bench<double> b({{3, 7}});
  const auto y = scale(b.var(0), -2.5);
  for (std::size_t i = 0; i < 21; ++i) CHECK(y.values()[i] == -2.5 * b.values(0)[i]);
  b.tape.clear();
  CHECK(b.check([&] { return probe(add(scale(b.var(0), -2.5), scale(b.var(0), 0.5))); }).worst < 1e-9);
}

TEST_CASE("reshape: the same numbers, and gradients through either shape add up", "[op]") {
  Bench<double> b({{3, 8}});
  const auto x = scale(b.var(0), 1.0);
  const auto y = reshape(reshape(x, {4, 6}), {24});
  CHECK(y.value() == x.value());
  CHECK(y.shape() == Shape{24});
  b.tape.clear();
  CHECK(b.check([&] {
    const auto z = scale(b.var(0), 2.0);
    return add(probe(reshape(z, {4, 6}), 1), add(probe(z, 2), probe(reshape(z, {24}), 3)));
  }).worst < 1e-9);
  CHECK_THROWS_AS(reshape(b.var(0), {5, 5}), shape_error);
  CHECK_THROWS_WITH(reshape(b.var(0), {5, 5}), "reshape: (3, 8) has 24 elements, (5, 5) has 25");
  CHECK(copy_of(ones(b.tape, 3)) == std::vector<double>{1, 1, 1});
}
