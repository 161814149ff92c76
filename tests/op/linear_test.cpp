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

// y = linear(linear(x, w), w) in bf16: every product reads rounded numbers, also those of the backward pass.
TEST_CASE("linear: in bf16 every product reads rounded inputs, forward and backward", "[op]") {
  const int n = 40, d = 24;
  Bench<float> b({{n, d}, {d, d}});
  b.cpu.set_products(Products::bf16);
  const auto round = [](float v) { return double(float(depthbench::bfloat16(v))); };
  const auto product = [&](int rows, int cols, int inner, auto x, auto y) {  // of functions (i, p) and (p, j)
    std::vector<double> z(std::size_t(rows * cols));
    for (int i = 0; i < rows; ++i) for (int j = 0; j < cols; ++j) for (int p = 0; p < inner; ++p) z[std::size_t(i * cols + j)] += round(float(x(i, p))) * round(float(y(p, j)));
    return z;
  };
  const auto x = [&](int i, int j) { return b.at(0).value[i * d + j]; };
  const auto w = [&](int i, int j) { return b.at(1).value[i * d + j]; };
  const auto inner = linear(b.var(0), b.var(1)), y = linear(inner, b.var(1));
  const auto u = copy_of(inner), v = copy_of(y);
  CHECK(error_of(u, product(n, d, d, x, [&](int p, int j) { return w(j, p); })) < 1e-6);
  CHECK(error_of(v, product(n, d, d, [&](int i, int p) { return u[std::size_t(i * d + p)]; }, [&](int p, int j) { return w(j, p); })) < 1e-6);

  const auto g = probe_weights<float>(std::size_t(n * d));
  b.tape.backward(probe(y));
  const auto dy = [&](int i, int j) { return g[std::size_t(i * d + j)]; };
  const auto du = product(n, d, d, dy, w);
  const auto dx = product(n, d, d, [&](int i, int p) { return du[std::size_t(i * d + p)]; }, w);
  CHECK(error_of(b.at(0).grads(), dx) < 1e-5);
  auto dw = product(d, d, n, [&](int i, int p) { return dy(p, i); }, [&](int p, int j) { return u[std::size_t(p * d + j)]; });
  const auto first = product(d, d, n, [&](int i, int p) { return du[std::size_t(p * d + i)]; }, [&](int p, int j) { return x(p, j); });
  for (std::size_t i = 0; i < dw.size(); ++i) dw[i] += first[i];
  CHECK(error_of(b.at(1).grads(), dw) < 1e-5);

  b.cpu.set_products(Products::fp32);
  CHECK(error_of(linear(b.var(0), b.var(1)).values(), u) > 1e-4);  // the test can tell the two
}
