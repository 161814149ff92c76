// Stream mixing for any number of streams, against plain loops, for both layouts of coefficients.
#include "depthbench/op/stream_mixing.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

constexpr int tokens = 10;

// By token (N, n, n + 2), or tokens last (n + 2, n, N): coefficient j of stream s is at offset j.
MixLayout by_token(int n, int first) { return {first, std::int64_t(n) * (n + 2), n + 2, 1}; }
MixLayout tokens_last(int n, int first) { return {std::int64_t(first) * n * tokens, 1, tokens, std::int64_t(n) * tokens}; }

}  // namespace

TEST_CASE("mix_streams: y_j = sum_s c_js x_s", "[op]") {
  for (const auto layout : {by_token, tokens_last}) for (const int n : {1, 2, 3, 5, 8}) for (const int d : {1, 6, 17}) {
    Bench<double> b({layout == by_token ? Shape{tokens, n * (n + 2)} : Shape{(n + 2) * n, tokens}, {tokens, n * d}});
    for (const auto& [first, count] : {std::pair{0, 1}, {1, n}, {n + 1, 1}}) {
      std::vector<double> needs(std::size_t(tokens * count * d));
      for (int t = 0; t < tokens; ++t) for (int j = 0; j < count; ++j) for (int s = 0; s < n; ++s) {
        const int k = first + j, at = layout == by_token ? (t * n + s) * (n + 2) + k : (k * n + s) * tokens + t;
        for (int c = 0; c < d; ++c) needs[std::size_t((t * count + j) * d + c)] += b.at(0).value[at] * b.at(1).value[(t * n + s) * d + c];
      }
      const auto mix = [&, first = first, count = count] { return mix_streams(b.var(0), layout(n, first), count, b.var(1), n); };
      CAPTURE(n, d, first, count);
      const auto y = mix();
      CHECK(y.shape() == Shape{tokens, count * d});
      CHECK(error_of(y.values(), needs) < 1e-14);
      b.tape.clear();
      CHECK(b.check([&] { return add(probe(mix()), add(probe(b.var(0), 1), probe(b.var(1), 2))); }, 1).worst < 1e-7);
    }
  }
}

TEST_CASE("write_streams: y_s = x_s + c_0s b", "[op]") {
  for (const auto layout : {by_token, tokens_last}) for (const int n : {1, 2, 3, 5, 8}) for (const int d : {1, 6, 17}) {
    Bench<double> b({layout == by_token ? Shape{tokens, n * (n + 2)} : Shape{(n + 2) * n, tokens}, {tokens, n * d}, {tokens, d}});
    std::vector<double> needs = b.values(1);
    for (int t = 0; t < tokens; ++t) for (int s = 0; s < n; ++s) {
      const int at = layout == by_token ? (t * n + s) * (n + 2) + 1 : (n + s) * tokens + t;
      for (int c = 0; c < d; ++c) needs[std::size_t((t * n + s) * d + c)] += b.at(0).value[at] * b.at(2).value[t * d + c];
    }
    const auto write = [&] { return write_streams(b.var(0), layout(n, 1), b.var(1), b.var(2), n); };
    CAPTURE(n, d);
    CHECK(error_of(write().values(), needs) < 1e-14);
    b.tape.clear();
    CHECK(b.check([&] { return add(probe(write()), probe(b.var(2), 2)); }, 1).worst < 1e-7);
  }
}

TEST_CASE("stream mixing: only the coefficients asked for get a gradient", "[op]") {
  Bench<double> b({{tokens, 3 * 5}, {tokens, 3 * 4}});
  b.tape.backward(probe(mix_streams(b.var(0), by_token(3, 1), 3, b.var(1), 3)));
  const auto g = b.grads(0);
  for (int i = 0; i < tokens * 15; ++i) CHECK((g[std::size_t(i)] != 0) == (i % 5 >= 1 && i % 5 <= 3));
}

TEST_CASE("hyper_coefficients: c = table + scale tanh(z), scale by column", "[op]") {
  Bench<double> b({{5 * 3, 4}, {4}, {3, 4}});
  std::vector<double> needs;
  for (int i = 0; i < 60; ++i) needs.push_back(b.at(2).value[i % 12] + b.at(1).value[i % 4] * std::tanh(b.at(0).value[i]));
  const auto c = hyper_coefficients(b.var(0), b.var(1), b.var(2));
  CHECK(c.shape() == Shape{5, 12});
  CHECK(error_of(c.values(), needs) < 1e-15);
  b.tape.clear();
  CHECK(b.check([&] { return probe(hyper_coefficients(b.var(0), b.var(1), b.var(2))); }).worst < 1e-8);
}

TEST_CASE("stream mixing: rejects wrong shapes, saying which", "[op]") {
  Bench<double> b({{4, 6}, {4, 10}, {3, 6}, {4, 4}, {7, 3}, {3}, {2, 3}});
  const MixLayout two{0, 6, 3, 1};  // (N, 2, 3)
  CHECK(message_of([&] { mix_streams(b.var(0), two, 3, b.var(1), 2); }) == "(nothing was thrown)");
  CHECK_THROWS_AS(mix_streams(b.var(2), two, 1, b.var(1), 2), shape_error);
  CHECK_THROWS_WITH(mix_streams(b.var(2), two, 1, b.var(1), 2), "mix_streams: c has shape (3, 6), too few coefficients for 2 streams of x (4, 10)");
  CHECK_THROWS_WITH(mix_streams(b.var(0), MixLayout{2, 6, 3, 1}, 2, b.var(1), 2), "mix_streams: c has shape (4, 6), too few coefficients for 2 streams of x (4, 10)");
  CHECK_THROWS_WITH(mix_streams(b.var(0), two, 1, b.var(1), 3), "mix_streams: c has shape (4, 6), too few coefficients for 3 streams of x (4, 10)");
  CHECK_THROWS_WITH(write_streams(b.var(0), two, b.var(1), b.var(3), 2), "write_streams: b has shape (4, 4), needs (4, 5)");
  CHECK_THROWS_WITH(write_streams(b.var(2), two, b.var(1), b.var(3), 2), "write_streams: c has shape (3, 6), too few coefficients for 2 streams of x (4, 10)");
  CHECK_THROWS_WITH(hyper_coefficients(b.var(4), b.var(5), b.var(6)), "hyper_coefficients: z has shape (7, 3), needs (6, 3)");
  Bench<double> h({{6, 3}, {1}, {2, 3}, {6}});
  CHECK_THROWS_WITH(hyper_coefficients(h.var(0), h.var(1), h.var(2)), "hyper_coefficients: scale has shape (1), needs (3)");
  CHECK_THROWS_WITH(mix_streams(b.var(0), two, 1, b.var(1), 0), "mix_streams: 0 streams, needs 1 or more");
}
