// A row program against plain loops: its outputs, its gradients (finite differences in double), and that
// gradients add up. Leaves become random parameters; everything follows from the program's own list of leaves.
#pragma once
#include "depthbench/op/add.hpp"
#include "depthbench/op/row_program.hpp"
#include "tests/tape/fixture.hpp"

namespace depthbench_test {

using Numbers = std::vector<double>;
using Lists = std::vector<Numbers>;  // one list of numbers a leaf

template <class Program> class ProgramCheck {
 public:
  ProgramCheck(const Program& program, int d, int tokens) : program_(program), d_(d), tokens_(tokens) {
    declare(typename Program::params{});
    declare(typename Program::tokens{});
    bench_.parameters.allocate(11);
  }

  // Largest relative difference of the outputs from needs(parameters, inputs of a token) -> its outputs.
  template <class F> double forward(F needs) {
    const auto outs = run();
    Lists params;
    for (int i = 0; i < np; ++i) params.push_back(bench_.values(i));
    double worst = 0;
    std::vector<Numbers> all(outs.size());
    for (int t = 0; t < tokens_; ++t) {
      Lists inputs;
      for (int i = np; i < np + ni; ++i) {
        const auto v = bench_.at(i).values();
        const std::size_t n = v.size() / std::size_t(tokens_);
        inputs.emplace_back(v.begin() + std::ptrdiff_t(n) * t, v.begin() + std::ptrdiff_t(n) * (t + 1));
      }
      const Lists y = needs(params, inputs);
      for (std::size_t o = 0; o < outs.size(); ++o) all[o].insert(all[o].end(), y[o].begin(), y[o].end());
    }
    for (std::size_t o = 0; o < outs.size(); ++o) worst = std::max(worst, error_of(outs[o].values(), all[o]));
    bench_.tape.clear();
    return worst;
  }

  // Error of the gradients; infinite if a second backward pass does not add exactly the same again.
  double backward(int directions = 2) {
    const auto loss = [&] {
      const auto outs = run();
      auto sum = probe(outs[0]);
      for (std::size_t o = 1; o < outs.size(); ++o) sum = depthbench::add(sum, probe(outs[o], 9 + o));
      return sum;
    };
    const double error = bench_.check(loss, directions).worst;
    bench_.tape.backward(loss());
    std::vector<Numbers> once;
    for (int i = 0; i < np + ni; ++i) once.push_back(bench_.grads(i));
    bench_.tape.backward(loss());
    for (int i = 0; i < np + ni; ++i)
      for (std::size_t k = 0; k < once[std::size_t(i)].size(); ++k)
        if (!(std::fabs(bench_.at(i).grads()[k] - 2 * once[std::size_t(i)][k]) <=
              1e-12 * (1 + std::fabs(once[std::size_t(i)][k]))))
          return INFINITY;
    return error;
  }

 private:
  static constexpr int np = Program::params::count, ni = Program::tokens::ins;

  template <class... Ls> void declare(depthbench::Leaves<Ls...>) { (declare_leaf<Ls>(), ...); }
  template <class L> void declare_leaf() {
    const auto n = std::int64_t(L::numel(d_));
    if (L::role == depthbench::Role::Param) bench_.declare({n});
    if (L::role == depthbench::Role::In) bench_.declare({tokens_, n});
  }
  auto run() {
    std::array<VarOf<double>, np> params;
    std::array<VarOf<double>, ni> inputs;
    for (int i = 0; i < np; ++i) params[std::size_t(i)] = bench_.var(i);
    for (int i = 0; i < ni; ++i) inputs[std::size_t(i)] = bench_.var(np + i);
    return depthbench::apply<Program, depthbench::Cpu, double>(program_, d_, params, inputs);
  }

  Program program_;
  int d_, tokens_;
  Bench<double> bench_;
};

inline constexpr int odd_widths[] = {1, 2, 3, 5, 8, 13, 16, 17, 33, 64, 100};

}  // namespace depthbench_test
