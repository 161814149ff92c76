// What checks of ops and designs share: a device with a tape and random parameters, a scalar that all of a value reaches,
// and the distance between two lists of numbers.
//   testing::Bench<Cpu, double> b({{7, 5}, {5}});                     // parameters "a" (7, 5) and "b" (5)
//   b.check([&] { return testing::probe(my_op(b.var(0), b.var(1))); }).worst < 1e-7
#pragma once
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "depthbench/op/linear.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/tape/gradcheck.hpp"

namespace depthbench::testing {

// Standard normal numbers, the same for the same seed.
template <class R = double>
std::vector<R> random_numbers(std::size_t n, std::uint64_t seed, double scale = 1) {
  const Rng rng(seed, 77);
  std::vector<R> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = R(scale * rng.normal(i));
  return v;
}

// The largest difference, relative to the largest number needed (to 1 if all are zero); NaN is infinite.
template <class A, class B> double error_of(const A& has, const B& needs) {
  if (std::size(has) != std::size(needs)) return INFINITY;
  double largest = 0, error = 0;
  for (const auto x : needs) largest = std::max(largest, std::fabs(double(x)));
  for (std::size_t i = 0; i < std::size(needs); ++i) {
    const double e = std::fabs(double(has[i]) - double(needs[i]));
    if (!(e <= error)) error = std::isnan(e) ? INFINITY : e;
  }
  return error / (largest > 0 ? largest : 1);
}
// The same of several lists: the worst of them.
inline double largest(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) worst = std::max(worst, error_of(a[i], b[i]));
  return worst;
}

// <v, y> with random numbers v: a scalar whose gradient is another number for each element of y.
template <class Device, class R> Var<Device, R> probe(Var<Device, R> y, std::uint64_t seed = 9) {
  const std::size_t n = std::size_t(y.numel());
  const auto v = std::make_shared<std::vector<R>>(random_numbers<R>(n, seed));
  y.tape->keep(v);
  return linear(reshape(y, {1, std::int64_t(n)}), y.tape->constant(v->data(), {1, std::int64_t(n)}));
}
template <class Device, class R> std::vector<R> copy_of(Var<Device, R> y) { return {y.values().begin(), y.values().end()}; }

template <class Device, class R> struct Bench {
  Device cpu;
  Tape<Device, R> tape;
  Parameters<Device, R> parameters;

  explicit Bench(int threads = 2) : cpu(threads), tape(cpu), parameters(cpu) {}

  // Declares standard normal parameters "a", "b", ... of these shapes and fills them.
  explicit Bench(std::initializer_list<Shape> shapes, int threads = 2) : Bench(threads) {
    for (const auto& s : shapes) declare(s);
    parameters.allocate(5);
  }
  Parameter<R>& declare(const Shape& s, double scale = 1) {
    const std::string name(1, char('a' + parameters.list().size()));
    return parameters.declare(name, s, Init::truncated_normal(scale));
  }
  Parameter<R>& at(int i) { return parameters.list()[std::size_t(i)]; }
  Var<Device, R> var(int i) { return tape.use(at(i)); }
  std::vector<R> values(int i) { return {at(i).values().begin(), at(i).values().end()}; }
  std::vector<R> grads(int i) { return {at(i).grads().begin(), at(i).grads().end()}; }

  // Largest relative error of directional derivatives of f(): a scalar.
  template <class F> GradCheck check(F f, int directions = 3) {
    return gradcheck<Device, R>(tape, parameters, f, directions);
  }
};

}  // namespace depthbench::testing
