#include "depthbench/op/embedding.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {
const std::vector<std::int32_t> tokens{3, 0, 3, 3, 6, 0};
}

TEST_CASE("embedding: rows by token", "[op]") {
  for (const int d : {1, 5, 64, 65, 130}) {
    Bench<double> b({{7, d}});
    const auto y = embedding(std::span(tokens), b.var(0));
    CHECK(y.shape() == Shape{6, d});
    int wrong = 0;
    for (int n = 0; n < 6; ++n)
      for (int c = 0; c < d; ++c)
        wrong += y.value()[n * d + c] != b.at(0).value[tokens[std::size_t(n)] * d + c];
    CHECK(wrong == 0);
  }
}

TEST_CASE("embedding: the gradient of a row adds up its tokens in their order", "[op]") {
  for (const int d : {1, 5, 64, 65, 130}) {
    Bench<float> b({{7, d}});
    b.tape.backward(probe(embedding(std::span(tokens), b.var(0))));
    const auto v = probe_weights<float>(std::size_t(6 * d));
    std::vector<float> needs(std::size_t(7 * d));
    for (int n = 0; n < 6; ++n)
      for (int c = 0; c < d; ++c)
        needs[std::size_t(tokens[std::size_t(n)] * d + c)] += v[std::size_t(n * d + c)];
    CHECK(b.grads(0) == needs);  // the same bits: rows of unused tokens are exactly zero
    b.tape.backward(probe(embedding(std::span(tokens), b.var(0))));
    for (float& x : needs) x *= 2;
    CHECK(error_of(b.grads(0), needs) < 1e-6);
  }
}

TEST_CASE("embedding: the same bits on any number of threads, with many repeated tokens", "[op]") {
  std::vector<std::int32_t> many(1000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = std::int32_t(Rng(1).below(i, 3));
  std::vector<float> one;
  for (const int threads : {1, 2, 3, 4}) {
    Bench<float> b({{7, 200}}, threads);
    b.tape.backward(probe(embedding(std::span<const std::int32_t>(many), b.var(0))));
    if (threads == 1) one = b.grads(0);
    CHECK(b.grads(0) == one);
  }
}

TEST_CASE("embedding: gradient agrees with finite differences, a shared table too", "[op]") {
  Bench<double> b({{7, 5}});
  const std::vector<std::int32_t> other{1, 3};
  CHECK(b.check([&] {
           return add(probe(embedding(std::span(tokens), b.var(0))),
                      probe(linear(embedding(std::span(other), b.var(0)), b.var(0))));
         }).worst < 1e-8);
}

TEST_CASE("embedding: rejects a token outside the table, saying where", "[op]") {
  Bench<double> b({{7, 5}});
  const std::vector<std::int32_t> high{0, 7}, low{0, 1, -1};
  CHECK_THROWS_AS(embedding(std::span(high), b.var(0)), shape_error);
  CHECK_THROWS_WITH(embedding(std::span(high), b.var(0)),
                    "embedding: token 7 at position 1 is outside the table of 7 rows");
  CHECK_THROWS_WITH(embedding(std::span(low), b.var(0)),
                    "embedding: token -1 at position 2 is outside the table of 7 rows");
}
