// What tests of ops share: a device, a tape, random parameters, and a scalar that all of a value reaches.
#pragma once
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/tape/gradcheck.hpp"

namespace depthbench_test {

template <class R> using VarOf = depthbench::Var<depthbench::Cpu, R>;

// Standard normal numbers, the same for the same seed.
template <class R = double>
std::vector<R> random_numbers(std::size_t n, std::uint64_t seed, double scale = 1) {
  const depthbench::Rng rng(seed, 77);
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

// <v, y> with random numbers v: a scalar whose gradient is another number for each element of y.
template <class R> VarOf<R> probe(VarOf<R> y, std::uint64_t seed = 9) {
  const std::size_t n = std::size_t(y.numel());
  const auto v = std::make_shared<std::vector<R>>(random_numbers<R>(n, seed));
  y.tape->keep(v);
  return linear(reshape(y, {1, std::int64_t(n)}), y.tape->constant(v->data(), {1, std::int64_t(n)}));
}
template <class R = double>
std::vector<R> probe_weights(std::size_t n, std::uint64_t seed = 9) {
  return random_numbers<R>(n, seed);
}

template <class R> struct Bench {
  depthbench::Cpu cpu;
  depthbench::Tape<depthbench::Cpu, R> tape;
  depthbench::Parameters<depthbench::Cpu, R> parameters;

  explicit Bench(int threads = 2) : cpu(threads), tape(cpu), parameters(cpu) {}

  // Declares standard normal parameters "a", "b", ... of these shapes and fills them.
  explicit Bench(std::initializer_list<depthbench::Shape> shapes, int threads = 2) : Bench(threads) {
    for (const auto& s : shapes) declare(s);
    parameters.allocate(5);
  }
  depthbench::Parameter<R>& declare(const depthbench::Shape& s, double scale = 1) {
    const std::string name(1, char('a' + parameters.list().size()));
    return parameters.declare(name, s, depthbench::Init::truncated_normal(scale));
  }
  depthbench::Parameter<R>& at(int i) { return parameters.list()[std::size_t(i)]; }
  VarOf<R> var(int i) { return tape.use(at(i)); }
  std::vector<R> values(int i) { return {at(i).values().begin(), at(i).values().end()}; }
  std::vector<R> grads(int i) { return {at(i).grads().begin(), at(i).grads().end()}; }

  // Largest relative error of directional derivatives of f(): a scalar.
  template <class F> depthbench::GradCheck check(F f, int directions = 3) {
    return depthbench::gradcheck<depthbench::Cpu, R>(tape, parameters, f, directions);
  }
};

template <class R> std::vector<R> copy_of(VarOf<R> y) { return {y.values().begin(), y.values().end()}; }

// Calls f() and returns the message of the library's error it throws.
template <class F> std::string message_of(F f) {
  try {
    f();
  } catch (const depthbench::error& e) {
    return e.what();
  }
  return "(nothing was thrown)";
}

}  // namespace depthbench_test
