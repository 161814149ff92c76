// Every SMALL node: value against a formula, gradient against finite differences.
#include "depthbench/kernel/small.hpp"

#include "tests/catch.hpp"
#include "tests/kernel/program_fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// y = f(x) or f(p, x) of small matrices
struct TanhOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<3, 2>, OutToken<3, 2>>;
  void operator()(auto&, auto& x, auto& y) const { y = tanh(x); }
};
struct TanhOfOne : TanhOf {  // too few numbers for whole registers
  using tokens = Leaves<Token<1, 2>, OutToken<1, 2>>;
};
struct SigmoidOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<3, 7>, OutToken<3, 7>>;
  void operator()(auto&, auto& x, auto& y) const { y = sigmoid(x); }
};
struct ExpOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<2, 2>, OutToken<2, 2>>;
  void operator()(auto&, auto& x, auto& y) const { y = exp(x); }
};
struct RsqrtOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<2, 2>, OutToken<2, 2>>;
  void operator()(auto&, auto& x, auto& y) const { y = rsqrt(x * x + 0.5); }
};
struct AffineOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<2, 3>, OutToken<2, 3>>;
  void operator()(auto&, auto& x, auto& y) const { y = 3.0 * (x / 7.0 + 2.0); }
};
struct ColumnsOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<3, 5>, OutToken<3, 2>>;
  void operator()(auto&, auto& x, auto& y) const { y = columns<2, 2>(x); }
};
struct TransposeOf {
  using params = Leaves<>;
  using tokens = Leaves<Token<2, 3>, OutToken<3, 2>>;
  void operator()(auto&, auto& x, auto& y) const { y = transpose(x); }
};
struct ColumnTransposed {
  using params = Leaves<>;
  using tokens = Leaves<Token<4, 3>, OutToken<1, 4>>;
  void operator()(auto&, auto& x, auto& y) const { y = transpose(column<1>(x)); }
};
template <int AR, int AC, int BR, int BC> struct SumAndProduct {  // (a + b) and a * b, broadcast
  static constexpr int R = AR > BR ? AR : BR, C = AC > BC ? AC : BC;
  using params = Leaves<Param<AR, AC>>;
  using tokens = Leaves<Token<BR, BC>, OutToken<R, C>, OutToken<R, C>>;
  void operator()(auto&, auto& a, auto& b, auto& y, auto& z) const {
    y = a + b;
    z = a * b;
  }
};
struct SharedNode {  // a named node used three times, and a temporary inside another
  using params = Leaves<Param<2, 2>>;
  using tokens = Leaves<Token<2, 2>, OutToken<2, 2>, OutToken<2, 2>>;
  void operator()(auto&, auto& p, auto& x, auto& y, auto& z) const {
    auto t = tanh(p * x);
    auto u = t * t + transpose(t);
    y = u;
    z = u * sigmoid(t + x);
  }
};

template <class Program, class F> void check(F f) {
  for (const int tokens : {1, 5, 40}) {
    ProgramCheck<Program> program({}, 4, tokens);
    CHECK(program.forward(f) < 1e-15);
    CHECK(program.backward() < 1e-8);
  }
}
template <class F> auto each(F f) {
  return [f](const auto&, const auto& in) {
    Numbers y;
    for (const double x : in[0]) y.push_back(f(x));
    return Lists{y};
  };
}
template <int AR, int AC, int BR, int BC> void check_broadcast() {
  using P = SumAndProduct<AR, AC, BR, BC>;
  check<P>([](const auto& p, const auto& in) {
    Lists out(2);
    for (int i = 0; i < P::R; ++i) for (int j = 0; j < P::C; ++j) {
      const double a = p[0][std::size_t((AR == 1 ? 0 : i) * AC + (AC == 1 ? 0 : j))];
      const double b = in[0][std::size_t((BR == 1 ? 0 : i) * BC + (BC == 1 ? 0 : j))];
      out[0].push_back(a + b);
      out[1].push_back(a * b);
    }
    return out;
  });
}

// The adjoint of a gather visits exactly the places that read an element.
template <class F, int Out, int In> int broken_index_map() {
  int wrong = 0;
  for (int j = 0; j < In; ++j) {
    std::vector<int> readers(Out), listed(Out);
    for (int k = 0; k < Out; ++k) readers[std::size_t(k)] += F::at(k) == j;
    for (int q = 0; q < F::fan; ++q) if (const int k = F::pre(j, q); k >= 0) ++listed.at(std::size_t(k));
    wrong += readers != listed;
  }
  return wrong;
}

}  // namespace

TEST_CASE("small: functions of every number", "[kernel]") {
  check<TanhOf>(each([](double x) { return std::tanh(x); }));
  check<TanhOfOne>(each([](double x) { return std::tanh(x); }));
  check<SigmoidOf>(each([](double x) { return 1 / (1 + std::exp(-x)); }));
  check<ExpOf>(each([](double x) { return std::exp(x); }));
  check<RsqrtOf>(each([](double x) { return 1 / std::sqrt(x * x + 0.5); }));
  check<AffineOf>(each([](double x) { return 3 * (x / 7 + 2); }));
}

TEST_CASE("small: parts of a matrix and its transpose", "[kernel]") {
  check<ColumnsOf>([](const auto&, const auto& in) {
    Numbers y;
    for (int i = 0; i < 3; ++i) for (int j = 2; j < 4; ++j) y.push_back(in[0][std::size_t(i * 5 + j)]);
    return Lists{y};
  });
  check<TransposeOf>([](const auto&, const auto& in) {
    const auto& x = in[0];
    return Lists{{x[0], x[3], x[1], x[4], x[2], x[5]}};
  });
  check<ColumnTransposed>([](const auto&, const auto& in) {
    const auto& x = in[0];
    return Lists{{x[1], x[4], x[7], x[10]}};
  });
}

TEST_CASE("small: sums and products, broadcast along either axis or both", "[kernel]") {
  check_broadcast<2, 3, 2, 3>();
  check_broadcast<2, 3, 1, 3>();
  check_broadcast<2, 3, 2, 1>();
  check_broadcast<1, 3, 2, 3>();
  check_broadcast<3, 1, 1, 2>();
  check_broadcast<1, 1, 3, 2>();
}

TEST_CASE("small: a node that several others use", "[kernel]") {
  check<SharedNode>([](const auto& p, const auto& in) {
    double t[4], u[4];
    Numbers y, z;
    for (std::size_t k = 0; k < 4; ++k) t[k] = std::tanh(p[0][k] * in[0][k]);
    for (std::size_t k = 0; k < 4; ++k) u[k] = t[k] * t[k] + t[(k % 2) * 2 + k / 2];
    for (std::size_t k = 0; k < 4; ++k)
      y.push_back(u[k]), z.push_back(u[k] / (1 + std::exp(-t[k] - in[0][k])));
    return Lists{y, z};
  });
}

TEST_CASE("small: index maps and their adjoints belong together", "[kernel]") {
  CHECK(broken_index_map<fn::Columns<2, 2, 5>, 6, 15>() == 0);
  CHECK(broken_index_map<fn::Columns<0, 4, 4>, 8, 8>() == 0);
  CHECK(broken_index_map<fn::Transpose<2, 3>, 6, 6>() == 0);
  CHECK(broken_index_map<fn::Transpose<4, 1>, 4, 4>() == 0);
  CHECK(broken_index_map<fn::Spread<2, 3, 2, 3>, 6, 6>() == 0);
  CHECK(broken_index_map<fn::Spread<1, 3, 2, 3>, 6, 3>() == 0);
  CHECK(broken_index_map<fn::Spread<2, 1, 2, 3>, 6, 2>() == 0);
  CHECK(broken_index_map<fn::Spread<1, 1, 2, 3>, 6, 1>() == 0);
}
