// Every COMBINE node at odd widths: value against a formula, gradient against finite differences.
#include "depthbench/kernel/combine.hpp"

#include "tests/catch.hpp"
#include "tests/kernel/program_fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

struct MixOne {  // y = A x, A of the token
  using params = Leaves<>;
  using tokens = Leaves<Token<3, 2>, Rows<2>, OutRows<3>>;
  void operator()(auto&, auto& a, auto& x, auto& y) const { y = mix(a, x); }
};
struct MixThree {  // y = A x + B^T z + w, A of the launch
  using params = Leaves<Param<2, 3>>;
  using tokens = Leaves<Token<1, 2>, Rows<3>, Rows<1>, Rows<2>, OutRows<2>>;
  void operator()(auto&, auto& a, auto& b, auto& x, auto& z, auto& w, auto& y) const {
    y = mix(a, x) + mix(transpose(b), z) + same(w);
  }
};
struct MadeRows {  // rows that two later nodes and an output use
  using params = Leaves<Param<2, 2>>;
  using tokens = Leaves<Rows<2>, Rows<2>, OutRows<2>, OutRows<1>, OutToken<2, 1>>;
  void operator()(auto&, auto& a, auto& x, auto& z, auto& y, auto& u, auto& s) const {
    auto h = rows(mix(a, x) + same(z));
    auto q = sum_squares(h);
    y = h;
    u = mix(transpose(tanh(q)), h);
    s = q;
  }
};
struct ScaledRows {  // y_i = s_i x_i * w
  using params = Leaves<Channels<1>>;
  using tokens = Leaves<Token<2, 1>, Rows<2>, OutRows<2>>;
  void operator()(auto&, auto& w, auto& s, auto& x, auto& y) const {
    auto v = scaled(s, x, w);
    y = v;
  }
};

// out_j += sum_i a[j, i] h_i; transposed: a[i, j]
void add_mix(Numbers& out, const Numbers& a, bool transposed, const Numbers& h, int outs, int ins, int d) {
  out.resize(std::size_t(outs * d));
  for (int j = 0; j < outs; ++j) for (int i = 0; i < ins; ++i) for (int c = 0; c < d; ++c)
        out[std::size_t(j * d + c)] +=
            a[std::size_t(transposed ? i * outs + j : j * ins + i)] * h[std::size_t(i * d + c)];
}

template <class Program, class F> void check(F f) {
  for (const int d : odd_widths) {
    ProgramCheck<Program> program({}, d, 18);
    CAPTURE(d);
    CHECK(program.forward([&](const auto& p, const auto& in) { return f(p, in, d); }) < 1e-14);
    CHECK(program.backward() < 1e-8);
  }
}

}  // namespace

TEST_CASE("combine: a matrix of the token times rows; rows of the matrix are destinations", "[kernel]") {
  check<MixOne>([](const auto&, const auto& in, int d) {
    Lists y(1);
    add_mix(y[0], in[0], false, in[1], 3, 2, d);
    return y;
  });
}

TEST_CASE("combine: sums of mixtures and of rows as they are", "[kernel]") {
  check<MixThree>([](const auto& p, const auto& in, int d) {
    Lists y(1);
    add_mix(y[0], p[0], false, in[1], 2, 3, d);
    add_mix(y[0], in[0], true, in[2], 2, 1, d);
    for (std::size_t i = 0; i < y[0].size(); ++i) y[0][i] += in[3][i];
    return y;
  });
}

TEST_CASE("combine: rows made in the program and used again", "[kernel]") {
  check<MadeRows>([](const auto& p, const auto& in, int d) {
    Lists y(3);
    add_mix(y[0], p[0], false, in[0], 2, 2, d);
    for (std::size_t i = 0; i < y[0].size(); ++i) y[0][i] += in[1][i];
    Numbers t;
    for (int i = 0; i < 2; ++i) {
      double q = 0;
      for (int c = 0; c < d; ++c) q += y[0][std::size_t(i * d + c)] * y[0][std::size_t(i * d + c)];
      y[2].push_back(q);
      t.push_back(std::tanh(q));
    }
    add_mix(y[1], t, false, y[0], 1, 2, d);
    return y;
  });
}

TEST_CASE("combine: rows scaled by a factor each and by channel", "[kernel]") {
  check<ScaledRows>([](const auto& p, const auto& in, int d) {
    Lists y(1);
    for (int i = 0; i < 2; ++i) for (int c = 0; c < d; ++c)
      y[0].push_back(in[0][std::size_t(i)] * in[1][std::size_t(i * d + c)] * p[0][std::size_t(c)]);
    return y;
  });
}
