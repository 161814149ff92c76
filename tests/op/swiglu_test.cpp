#include "depthbench/op/swiglu.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("swiglu: equals silu(a) b", "[op]") {
  for (const int f : {1, 7, 16, 33}) {
    Bench<double> b({{5, f}, {5, f}});
    Bench<float> s({{5, f}, {5, f}});
    std::vector<double> needs;
    for (int i = 0; i < 5 * f; ++i)
      needs.push_back(b.at(0).value[i] / (1 + std::exp(-b.at(0).value[i])) * b.at(1).value[i]);
    const auto h = swiglu(b.var(0), b.var(1));
    const auto single = swiglu(s.var(0), s.var(1));
    CHECK(error_of(h.values(), needs) < 1e-15);
    CHECK(error_of(single.values(), needs) < 1e-6);
    b.tape.clear();
    CHECK(b.check([&] { return probe(swiglu(b.var(0), b.var(1))); }).worst < 1e-8);
    CHECK(b.check([&] {
             return add(probe(swiglu(b.var(0), b.var(1)), 1), probe(swiglu(b.var(1), b.var(0)), 2));
           }).worst < 1e-8);
  }
}

TEST_CASE("swiglu: large arguments stay finite, forward and backward", "[op]") {
  Bench<float> b({{1, 6}, {1, 6}});
  const float x[] = {-1e4f, -100.f, -88.f, 88.f, 100.f, 1e4f};
  std::copy(x, x + 6, b.at(0).value);
  std::fill(b.at(1).value, b.at(1).value + 6, 1.f);
  const auto h = swiglu(b.var(0), b.var(1));
  for (int i = 0; i < 6; ++i) CHECK(double(h.value()[i]) == Approx(x[i] > 0 ? x[i] : 0).margin(1e-30));
  b.tape.backward(probe(h));
  for (const float g : b.grads(0)) CHECK(std::isfinite(g));
}

TEST_CASE("swiglu: rejects two shapes, saying which", "[op]") {
  Bench<double> b({{2, 8}, {8, 2}});
  CHECK_THROWS_AS(swiglu(b.var(0), b.var(1)), shape_error);
  CHECK_THROWS_WITH(swiglu(b.var(0), b.var(1)), "swiglu: b has shape (8, 2), needs (2, 8)");
}
