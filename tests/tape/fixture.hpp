// What tests of ops share: testing::Bench on the CPU, and the message of an error.
#pragma once
#include "depthbench/backend/cpu.hpp"
#include "depthbench/testing/bench.hpp"

namespace depthbench_test {

using depthbench::testing::copy_of;
using depthbench::testing::error_of;
using depthbench::testing::largest;
using depthbench::testing::probe;
using depthbench::testing::random_numbers;

template <class R> using VarOf = depthbench::Var<depthbench::Cpu, R>;
template <class R> using Bench = depthbench::testing::Bench<depthbench::Cpu, R>;

template <class R = double> std::vector<R> probe_weights(std::size_t n, std::uint64_t seed = 9) {
  return random_numbers<R>(n, seed);
}

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
