// The gradient checker itself: finds what is wrong, names it, and leaves everything as it was.
#include "depthbench/tape/gradcheck.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// y = x^2, with a gradient of `factor` times 2 x
VarOf<double> square(VarOf<double> x, double factor) {
  auto& tape = *x.tape;
  auto y = tape.make(x.shape());
  for (std::int64_t i = 0; i < x.numel(); ++i) y.out()[i] = x.value()[i] * x.value()[i];
  tape.record(1, [&tape, x, y, factor] {
    const double* dy = tape.grad(y);
    const auto dx = tape.accumulate(x);
    if (dx.g)
      for (std::int64_t i = 0; i < x.numel(); ++i)
        dx.g[i] = (dx.add ? dx.g[i] : 0) + factor * 2 * x.value()[i] * dy[i];
  });
  return y;
}

}  // namespace

TEST_CASE("gradcheck: a right gradient passes, a wrong one fails by as much as it is wrong", "[tape]") {
  Bench<double> b({{3, 4}, {12}});
  const auto loss = [&](double factor) {
    return [&b, factor] { return add(probe(b.var(1)), probe(square(b.var(0), factor))); };
  };
  CHECK(b.check(loss(1)).worst < 1e-9);
  const auto wrong = b.check(loss(1.01));
  CHECK(wrong.worst > 1e-4);
  CHECK(wrong.worst < 0.02);
  CHECK(wrong.parameter == "a");
  CHECK(b.check(loss(-1)).worst > 0.1);
  CHECK_FALSE(b.check(loss(NAN)).worst < 1e9);
}

TEST_CASE("gradcheck: a gradient that is missing altogether fails", "[tape]") {
  Bench<double> b({{3, 4}});
  const auto detached = [&] {
    const auto x = b.tape.constant(b.at(0).value, {3, 4});
    return probe(square(x, 0));
  };
  CHECK(b.check([&] { return add(detached(), scale(probe(b.var(0)), 0.0)); }).worst > 1);
}

TEST_CASE("gradcheck: leaves values, gradients and tape as they were", "[tape]") {
  Bench<double> b({{3, 4}, {5}});
  const auto x = b.values(0), y = b.values(1);
  b.check([&] { return probe(square(b.var(0), 1)); });
  CHECK(b.values(0) == x);
  CHECK(b.values(1) == y);
  CHECK_FALSE(b.at(0).has_grad);
  CHECK(b.cpu.memory().in_use() > 0);
  b.tape.backward(probe(b.var(0)));
  CHECK(b.grads(0) == probe_weights(12));
}
