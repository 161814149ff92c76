// A user's own row program as an op.
#include "depthbench/op/row_program.hpp"

#include "tests/catch.hpp"
#include "tests/kernel/program_fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// y = sigmoid(<x, w> + b) x + (1 - sigmoid(...)) z: a gate between two rows
struct Gate {
  using params = Leaves<Channels<1>, Param<1, 1>>;
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>, OutToken<1, 1>>;
  void operator()(auto&, auto& w, auto& b, auto& x, auto& z, auto& y, auto& gate) const {
    auto m = moments(x, w);                                  // (1, 2)
    auto g = sigmoid(column<0>(m) + b);                      // (1, 1)
    auto other = -1.0 * g + 1.0;
    y = mix(g, x) + mix(other, z);
    gate = g;
  }
};

}  // namespace

TEST_CASE(
    "row program: equals its formula at any width and number of tokens, its gradients finite differences",
    "[op]") {
  for (const int d : odd_widths) for (const int tokens : {1, 15, 16, 17, 50}) {
    ProgramCheck<Gate> program({}, d, tokens);
    CHECK(program.forward([&](const auto& p, const auto& in) {
      double dot = p[1][0];
      for (std::size_t c = 0; c < std::size_t(d); ++c) dot += in[0][c] * p[0][c];
      const double g = 1 / (1 + std::exp(-dot));
      Lists y(2);
      for (std::size_t c = 0; c < std::size_t(d); ++c) y[0].push_back(g * in[0][c] + (1 - g) * in[1][c]);
      y[1] = {g};
      return y;
    }) < 1e-14);
    if (tokens == 17) CHECK(program.backward() < 1e-7);
  }
}

TEST_CASE("row program: an output that nobody uses has no gradient", "[op]") {
  Bench<double> b({{5}, {1}, {4, 5}, {4, 5}});
  const auto run = [&](int which) {
    return [&b, which] {
      return probe(
          apply<Gate, Cpu, double>({}, 5, {b.var(0), b.var(1)}, {b.var(2), b.var(3)})[std::size_t(which)]);
    };
  };
  CHECK(b.check(run(0)).worst < 1e-8);
  CHECK(b.check(run(1)).worst < 1e-8);
}

TEST_CASE("row program: rejects leaves of another size, saying which", "[op]") {
  Bench<double> b({{5}, {1}, {4, 5}, {3, 5}, {6}, {2}});
  const auto run = [&](int w, int bias, int z) {
    return message_of([&] {
      apply<Gate, Cpu, double>({}, 5, {b.var(w), b.var(bias)}, {b.var(2), b.var(z)});
    });
  };
  CHECK(run(0, 1, 3) == "row program: input 1 has shape (3, 5), needs 20 elements (4 tokens, width 5)");
  CHECK(run(4, 1, 2) == "row program: parameter 0 has shape (6), needs 5 elements (4 tokens, width 5)");
  CHECK(run(0, 5, 2) == "row program: parameter 1 has shape (2), needs 1 elements (4 tokens, width 5)");
  CHECK(run(0, 1, 2) == "(nothing was thrown)");
}
