#include "depthbench/op/streams.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("streams: copies side by side, stream-major", "[op]") {
  for (const int n : {1, 2, 3, 4}) for (const int d : {1, 5, 16, 33}) {
    Bench<double> b({{18, d}});
    const auto y = repeat_streams(b.var(0), n);
    CHECK(y.shape() == Shape{18, n * d});
    int wrong = 0;
    for (int t = 0; t < 18; ++t) for (int s = 0; s < n; ++s) for (int c = 0; c < d; ++c)
      wrong += y.value()[(t * n + s) * d + c] != b.at(0).value[t * d + c];
    CHECK(wrong == 0);
    b.tape.clear();
    CHECK(b.check([&] { return add(probe(repeat_streams(b.var(0), n)), probe(b.var(0))); }).worst < 1e-8);
  }
}

TEST_CASE("streams: their sum, times a factor", "[op]") {
  for (const int n : {1, 2, 3, 4}) for (const int d : {1, 5, 16, 33}) {
    Bench<double> b({{18, n * d}});
    const auto y = sum_streams(b.var(0), n, 0.25);
    std::vector<double> needs(std::size_t(18 * d));
    for (int t = 0; t < 18; ++t) for (int s = 0; s < n; ++s) for (int c = 0; c < d; ++c)
      needs[std::size_t(t * d + c)] += 0.25 * b.at(0).value[(t * n + s) * d + c];
    CHECK(error_of(y.values(), needs) < 1e-15);
    b.tape.clear();
    CHECK(b.check([&] { return add(probe(sum_streams(b.var(0), n, 0.25)), probe(b.var(0))); }).worst < 1e-8);
  }
}

TEST_CASE("streams: rejects columns that do not divide", "[op]") {
  Bench<double> b({{2, 7}});
  CHECK_THROWS_AS(sum_streams(b.var(0), 2, 1.0), shape_error);
  CHECK_THROWS_WITH(sum_streams(b.var(0), 2, 1.0),
                    "sum_streams: x has shape (2, 7), needs columns for 2 streams");
  CHECK_THROWS_AS(sum_streams(b.var(0), 0, 1.0), shape_error);
}
