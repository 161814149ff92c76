#include "depthbench/op/linear_cross_entropy.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Targets = std::vector<std::int32_t>;

namespace {

struct Needs {
  double loss = 0;
  std::vector<double> nll, dx, dw;
};
template <class R>
Needs naive(const std::vector<R>& x, const std::vector<R>& w, const Targets& targets, double normaliser) {
  const std::size_t n = targets.size(), d = x.size() / n, vocab = w.size() / d;
  Needs r{0, std::vector<double>(n), std::vector<double>(x.size()), std::vector<double>(w.size())};
  for (std::size_t t = 0; t < n; ++t) {
    if (targets[t] == ignored_target) continue;
    std::vector<double> z(vocab);
    double top = -INFINITY, sum = 0;
    for (std::size_t v = 0; v < vocab; ++v) {
      for (std::size_t c = 0; c < d; ++c) z[v] += double(x[t * d + c]) * double(w[v * d + c]);
      top = std::max(top, z[v]);
    }
    for (const double a : z) sum += std::exp(a - top);
    r.nll[t] = top + std::log(sum) - z[std::size_t(targets[t])];
    r.loss += r.nll[t] / normaliser;
    for (std::size_t v = 0; v < vocab; ++v) {
      const double g = (std::exp(z[v] - top) / sum - (int(v) == targets[t])) / normaliser;
      for (std::size_t c = 0; c < d; ++c) {
        r.dx[t * d + c] += g * double(w[v * d + c]);
        r.dw[v * d + c] += g * double(x[t * d + c]);
      }
    }
  }
  return r;
}
Targets some_targets(int n, int vocab, int ignore_every) {
  Targets t;
  for (int i = 0; i < n; ++i)
    t.push_back(ignore_every && i % ignore_every == 1
                    ? ignored_target
                    : std::int32_t(Rng(3).below(std::uint64_t(i), std::uint64_t(vocab))));
  return t;
}

template <class R> void agrees(int n, int d, int vocab, const Targets& targets, double limit) {
  CAPTURE(n, d, vocab);
  Bench<R> b({{n, d}, {vocab, d}});
  const auto needs = naive(b.values(0), b.values(1), targets, 7.5);
  std::vector<R> nll(std::size_t(n), R(-1));
  for (int pass = 1; pass <= 2; ++pass) {
    const auto loss =
        linear_cross_entropy(b.var(0), b.var(1), std::span<const std::int32_t>(targets), 7.5, nll.data());
    CHECK(loss.shape() == Shape{});
    CHECK(double(*loss.value()) == Approx(needs.loss).epsilon(limit));
    CHECK(error_of(nll, needs.nll) < limit);
    b.tape.backward(loss);
    for (const auto& [i, grad] : {std::pair{0, &needs.dx}, {1, &needs.dw}}) {
      auto scaled = *grad;
      for (double& x : scaled) x *= pass;
      CHECK(error_of(b.grads(i), scaled) < 10 * limit);
    }
  }
  b.tape.no_grad([&] {  // without gradients: the same numbers
    std::vector<R> again(std::size_t(n), R(-1));
    const auto loss =
        linear_cross_entropy(b.var(0), b.var(1), std::span<const std::int32_t>(targets), 7.5, again.data());
    CHECK(double(*loss.value()) == Approx(needs.loss).epsilon(limit));
    CHECK(error_of(again, needs.nll) < limit);
    return std::vector<VarOf<R>>{};
  });
}

}  // namespace

TEST_CASE("cross-entropy: equals its formula at any vocabulary, with ignored targets", "[op]") {
  for (const int vocab : {1, 2, 7, 8, 16, 17, 33, 100})
    agrees<double>(9, 5, vocab, some_targets(9, vocab, 3), 1e-13);
  for (const int vocab : {2, 17, 257}) agrees<float>(9, 5, vocab, some_targets(9, vocab, 3), 2e-6);
  agrees<double>(1, 1, 3, {2}, 1e-13);
}

TEST_CASE("cross-entropy: many rows in pieces", "[op]") {
  const int vocab = 9001;  // 4 MB of double hold 58 rows: pieces of 64
  CHECK(detail::rows_of_logits(300, vocab, 8) == 64);
  agrees<double>(150, 3, vocab, some_targets(150, vocab, 5), 1e-12);
  CHECK(detail::rows_of_logits(1000, 1000, 8) == 512);
  CHECK(detail::rows_of_logits(100, 10, 8) == 100);
  CHECK(detail::rows_of_logits(10, 10, 8) == 64);
}

TEST_CASE("cross-entropy: gradient agrees with finite differences, also through a scaled loss", "[op]") {
  Bench<double> b({{9, 5}, {17, 5}});
  const auto targets = some_targets(9, 17, 3);
  const auto loss = [&] {
    return linear_cross_entropy(b.var(0), b.var(1), std::span<const std::int32_t>(targets), 4.0);
  };
  CHECK(b.check(loss).worst < 1e-8);
  CHECK(b.check([&] {
           return add(scale(reshape(loss(), {1, 1}), -3.0),
                      linear(reshape(loss(), {1, 1}), reshape(loss(), {1, 1})));
         }).worst < 1e-7);
}

TEST_CASE("cross-entropy: with every target ignored, loss and gradients are zero", "[op]") {
  Bench<double> b({{4, 5}, {17, 5}});
  const Targets none(4, ignored_target);
  std::vector<double> nll(4, 9);
  const auto loss =
      linear_cross_entropy(b.var(0), b.var(1), std::span<const std::int32_t>(none), 1.0, nll.data());
  CHECK(*loss.value() == 0);
  CHECK(nll == std::vector<double>(4, 0));
  b.tape.backward(loss);
  CHECK(b.grads(0) == std::vector<double>(20, 0));
  CHECK(b.grads(1) == std::vector<double>(85, 0));
}

TEST_CASE("cross-entropy: logits of +-10000", "[op]") {
  Bench<float> b({{3, 1}, {20, 1}});
  for (int t = 0; t < 3; ++t) b.at(0).value[t] = 1;
  for (int v = 0; v < 20; ++v) b.at(1).value[v] = v == 4 ? 1e4f : v == 5 ? 1e4f : -1e4f;
  const Targets targets{4, 5, 6};
  std::vector<float> nll(3);
  const auto loss =
      linear_cross_entropy(b.var(0), b.var(1), std::span<const std::int32_t>(targets), 3.0, nll.data());
  CHECK(nll[0] == Approx(std::log(2)).epsilon(1e-3));  // a float near 10000 has steps of 0.001
  CHECK(nll[1] == nll[0]);
  CHECK(nll[2] == Approx(20000 + std::log(2)));
  b.tape.backward(loss);
  CHECK(b.grads(1)[4] == Approx((0.5 - 1 + 0.5 + 0.5) / 3));
  CHECK(b.grads(1)[6] == Approx(-1.0 / 3));
  CHECK(b.grads(1)[7] == 0);
}

TEST_CASE("cross-entropy: equal logits give the logarithm of the vocabulary", "[op]") {
  Bench<double> b({{2, 3}, {50, 3}});
  std::fill(b.at(1).value, b.at(1).value + 150, 0.0);
  const Targets targets{0, 49};
  CHECK(*linear_cross_entropy(b.var(0), b.var(1), std::span<const std::int32_t>(targets), 2.0).value() ==
        Approx(std::log(50)));
}

TEST_CASE("cross-entropy: rejects what does not match, saying where", "[op]") {
  Bench<double> b({{4, 5}, {17, 6}, {17, 5}});
  const auto run = [&](int w, Targets t) {
    return message_of(
        [&] { linear_cross_entropy(b.var(0), b.var(w), std::span<const std::int32_t>(t), 1.0); });
  };
  CHECK(run(1, {0, 0, 0, 0}) == "linear_cross_entropy: W has shape (17, 6), needs (V, 5)");
  CHECK(run(2, {0, 0, 0}) == "linear_cross_entropy: 3 targets, needs 4 (rows of x)");
  CHECK(run(2, {0, 0, 17, 0}) == "linear_cross_entropy: target 17 at position 2 is outside [0, 17)");
  CHECK(run(2, {0, -1, 0, 0}) == "linear_cross_entropy: target -1 at position 1 is outside [0, 17)");
  CHECK(run(2, {0, -100, 16, 0}) == "(nothing was thrown)");
}
