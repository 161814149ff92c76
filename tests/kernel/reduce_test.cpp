// Every REDUCE node at odd widths: value against a formula, gradient against finite differences.
#include "depthbench/kernel/reduce.hpp"

#include "tests/catch.hpp"
#include "tests/kernel/program_fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

template <int N> struct SquaresOf {
  using params = Leaves<>;
  using tokens = Leaves<Rows<N>, OutToken<N, 1>>;
  void operator()(auto&, auto& h, auto& y) const { y = sum_squares(h); }
};
template <int N, int K> struct MomentsOf {
  using params = Leaves<Channels<K>>;
  using tokens = Leaves<Rows<N>, OutToken<N, K + 1>>;
  void operator()(auto&, auto& w, auto& h, auto& y) const { y = moments(h, w); }
};

double dot(const Numbers& a, int i, const Numbers& b, int j, int d) {
  double s = 0;
  for (int c = 0; c < d; ++c) s += a[std::size_t(i * d + c)] * b[std::size_t(j * d + c)];
  return s;
}

template <int N> void check_squares(int d) {
  ProgramCheck<SquaresOf<N>> program({}, d, 19);
  CAPTURE(N, d);
  CHECK(program.forward([&](const auto&, const auto& in) {
    Lists y(1);
    for (int i = 0; i < N; ++i) y[0].push_back(dot(in[0], i, in[0], i, d));
    return y;
  }) < 1e-14);
  CHECK(program.backward() < 1e-8);
}
template <int N, int K> void check_moments(int d) {
  ProgramCheck<MomentsOf<N, K>> program({}, d, 19);
  CAPTURE(N, K, d);
  CHECK(program.forward([&](const auto& p, const auto& in) {
    Lists y(1);
    for (int i = 0; i < N; ++i) {
      for (int k = 0; k < K; ++k) y[0].push_back(dot(in[0], i, p[0], k, d));
      y[0].push_back(dot(in[0], i, in[0], i, d));
    }
    return y;
  }) < 1e-14);
  CHECK(program.backward() < 1e-8);
}

}  // namespace

TEST_CASE("reduce: sums of squares", "[kernel]") {
  for (const int d : odd_widths) check_squares<3>(d);
  check_squares<1>(33);
  check_squares<4>(17);
}

TEST_CASE("reduce: products with shared vectors, one row and two rows at a time", "[kernel]") {
  for (const int d : odd_widths) {
    check_moments<3, 2>(d);   // an odd number of rows: one at a time
    check_moments<4, 6>(d);   // two at a time
  }
  check_moments<1, 1>(13);
  check_moments<2, 12>(33);   // 13 columns: too many for two rows
}
