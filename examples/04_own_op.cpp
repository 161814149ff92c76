// An op of your own: a value, and a closure that passes its gradient on. A check tells right from nearly right.
#include "depthbench/backend/cpu.hpp"
#include "depthbench/op/add.hpp"
#include "depthbench/testing/bench.hpp"

namespace db = depthbench;
using V = db::Var<db::Cpu, double>;

// y = sin(x) / x, elementwise.        dx += dy (cos(x) - y) / x
V sinc(V x) {
  auto& tape = *x.tape;
  const std::int64_t n = x.numel();
  auto y = tape.make(x.shape());
  for (std::int64_t i = 0; i < n; ++i) y.out()[i] = std::sin(x.value()[i]) / x.value()[i];
  tape.record(1, [&tape, x, y, n] {  // called once, after everything that used y
    const double* dy = tape.grad(y);
    const auto dx = tape.accumulate(x);  // dx.add: somebody else has added to it already
    for (std::int64_t i = 0; i < n; ++i) {
      const double g = dy[i] * (std::cos(x.value()[i]) - y.value()[i]) / x.value()[i];
      dx.g[i] = dx.add ? dx.g[i] + g : g;
    }
  });
  return y;
}

// The same with the most common mistake of all: it overwrites what others have added.
V forgetful_sinc(V x) {
  auto& tape = *x.tape;
  const std::int64_t n = x.numel();
  auto y = tape.make(x.shape());
  for (std::int64_t i = 0; i < n; ++i) y.out()[i] = std::sin(x.value()[i]) / x.value()[i];
  tape.record(1, [&tape, x, y, n] {
    const double* dy = tape.grad(y);
    const auto dx = tape.accumulate(x);
    for (std::int64_t i = 0; i < n; ++i) dx.g[i] = dy[i] * (std::cos(x.value()[i]) - y.value()[i]) / x.value()[i];
  });
  return y;
}

int main() {
  db::testing::Bench<db::Cpu, double> bench({{5, 3}});  // one parameter (5, 3) of random numbers
  const auto show = [&](const char* what, auto f) {     // random directions, compared with differences
    const double worst = bench.check([&] { return db::testing::probe(f(bench.var(0))); }).worst;
    fmt::print("{:<32} {}\n", what, worst < 1e-8 ? "right" : worst > 1e-3 ? "wrong" : "doubtful");
  };
  show("sinc(x)", [](V x) { return sinc(x); });
  show("x + sinc(x)", [](V x) { return db::add(x, sinc(x)); });
  show("forgetful_sinc(x)", [](V x) { return forgetful_sinc(x); });
  show("x + forgetful_sinc(x)", [](V x) { return db::add(x, forgetful_sinc(x)); });
}

// Expected output:
// sinc(x)                          right
// x + sinc(x)                      right
// forgetful_sinc(x)                right
// x + forgetful_sinc(x)            wrong
