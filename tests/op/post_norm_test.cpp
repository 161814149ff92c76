// Norms after a branch: sandwich_write, sandwich_advance, post_norm_write, post_norm_advance, and factors on rms_norm.
#include "depthbench/op/add.hpp"
#include "depthbench/op/rms_norm.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;
using V = VarOf<double>;

namespace {

enum { x, y, outer, g };
template <class R> struct Branch : Bench<R> {
  explicit Branch(int d, int tokens = 19) : Bench<R>({{tokens, d}, {tokens, d}, {d}, {d}}) {}
};
std::vector<double> norm(const std::vector<double>& v, const std::vector<double>& gain, double eps) {
  std::vector<double> out;
  const std::size_t d = gain.size();
  for (std::size_t t = 0; t < v.size() / d; ++t) {
    double square = 0;
    for (std::size_t c = 0; c < d; ++c) square += v[t * d + c] * v[t * d + c];
    for (std::size_t c = 0; c < d; ++c) out.push_back(gain[c] * v[t * d + c] / std::sqrt(square / double(d) + eps));
  }
  return out;
}
std::vector<double> weighted(double a, const std::vector<double>& v, const std::vector<double>& w) {
  auto out = w;
  for (std::size_t i = 0; i < w.size(); ++i) out[i] += a * v[i];
  return out;
}
template <class R> std::vector<double> wide(const std::vector<R>& v) { return {v.begin(), v.end()}; }

constexpr double eps = 1e-3, alpha = 3.5;

template <class R> void equals_loops(int d, double limit) {
  Branch<R> b(d);
  const auto X = wide(b.values(x)), Y = wide(b.values(y)), O = wide(b.values(outer)), G = wide(b.values(g));
  CAPTURE(d, limit);
  const auto sandwich = weighted(1, X, norm(Y, O, eps));
  CHECK(error_of(sandwich_write(b.var(x), b.var(y), b.var(outer), eps).values(), sandwich) < limit);
  const auto [s, u] = sandwich_advance(b.var(x), b.var(y), b.var(outer), b.var(g), eps);
  CHECK(error_of(s.values(), sandwich) < limit);
  CHECK(error_of(u.values(), norm(sandwich, G, eps)) < 4 * limit);
  const auto post = norm(weighted(alpha, X, Y), O, eps);
  CHECK(error_of(post_norm_write(b.var(x), b.var(y), b.var(outer), eps, alpha).values(), post) < limit);
  const auto [p, v] = post_norm_advance(b.var(x), b.var(y), b.var(outer), b.var(g), eps, alpha);
  CHECK(error_of(p.values(), post) < limit);
  CHECK(error_of(v.values(), norm(post, G, eps)) < 4 * limit);
  b.tape.clear();
}

// Values and all gradients of two ways to make (x', u); `only`: 0 or 1 for one of the two, else both are used.
template <class F> std::vector<std::vector<double>> run(Branch<double>& b, int only, F f) {
  b.parameters.clear_grads();
  const std::array<V, 2> v = f();
  std::vector<std::vector<double>> all{copy_of(v[0]), copy_of(v[1])};
  b.tape.backward(only == 0 || only == 1 ? probe(v[std::size_t(only)]) : add(probe(v[0], 1), probe(v[1], 2)));
  b.parameters.settle_grads();
  for (int i = 0; i < 4; ++i) all.push_back(b.grads(i));
  return all;
}

}  // namespace

TEST_CASE("post norms: equal plain loops", "[op]") {
  for (const int d : {1, 2, 5, 8, 13, 16, 17, 33, 64, 100}) {
    equals_loops<double>(d, 1e-13);
    equals_loops<float>(d, 2e-6);
  }
}

TEST_CASE("post norms: write and read in one pass are the two one after the other, whichever result is used", "[op]") {
  for (const int d : {1, 5, 16, 33}) for (const int only : {0, 1, 2}) {
    Branch<double> b(d);
    CAPTURE(d, only);
    const auto sandwich = run(b, only, [&] { return sandwich_advance(b.var(x), b.var(y), b.var(outer), b.var(g), eps); });
    const auto sandwich_two = run(b, only, [&] {
      const auto next = sandwich_write(b.var(x), b.var(y), b.var(outer), eps);
      return std::array{next, rms_norm(next, b.var(g), eps)};
    });
    const auto sandwich_three = run(b, only, [&] {
      const auto next = add(b.var(x), rms_norm(b.var(y), b.var(outer), eps));
      return std::array{next, rms_norm(next, b.var(g), eps)};
    });
    const auto post = run(b, only, [&] { return post_norm_advance(b.var(x), b.var(y), b.var(outer), b.var(g), eps, alpha); });
    const auto post_two = run(b, only, [&] {
      const auto next = post_norm_write(b.var(x), b.var(y), b.var(outer), eps, alpha);
      return std::array{next, rms_norm(next, b.var(g), eps)};
    });
    const auto post_three = run(b, only, [&] {
      const auto next = rms_norm(add(scale(b.var(x), alpha), b.var(y)), b.var(outer), eps);
      return std::array{next, rms_norm(next, b.var(g), eps)};
    });
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(error_of(sandwich_two[i], sandwich[i]) < 1e-12);
      CHECK(error_of(sandwich_three[i], sandwich[i]) < 1e-12);
      CHECK(error_of(post_two[i], post[i]) < 1e-12);
      CHECK(error_of(post_three[i], post[i]) < 1e-12);
    }
  }
}

TEST_CASE("post norms: gradient agrees with finite differences", "[op]") {
  for (const int d : {1, 5, 16, 33}) {
    Branch<double> b(d);
    const auto both = [](const std::array<V, 2>& v) { return add(probe(v[0], 1), probe(v[1], 2)); };
    CAPTURE(d);
    CHECK(b.check([&] { return both(sandwich_advance(b.var(x), b.var(y), b.var(outer), b.var(g), 0.1)); }).worst < 1e-7);
    CHECK(b.check([&] { return probe(sandwich_write(b.var(x), b.var(y), b.var(outer), 0.1)); }).worst < 1e-7);
    CHECK(b.check([&] { return both(post_norm_advance(b.var(x), b.var(y), b.var(outer), b.var(g), 0.1, alpha)); }).worst < 1e-7);
    CHECK(b.check([&] { return probe(post_norm_write(b.var(x), b.var(y), b.var(outer), 0.1, alpha)); }).worst < 1e-7);
    CHECK(b.check([&] { return both(add_rms_norm(b.var(x), b.var(y), b.var(g), 0.1, 0.6)); }).worst < 1e-7);
    CHECK(b.check([&] { return probe(rms_norm(b.var(x), b.var(g), 0.1, 0.6)); }).worst < 1e-7);
  }
}

TEST_CASE("post norms: scaling the branch changes nothing but through eps", "[op]") {
  Branch<double> b(13);
  const auto before = copy_of(sandwich_write(b.var(x), b.var(y), b.var(outer), 1e-12));
  for (auto& v : b.at(y).values()) v *= 2;
  CHECK(error_of(copy_of(sandwich_write(b.var(x), b.var(y), b.var(outer), 1e-12)), before) < 1e-11);
  CHECK(error_of(copy_of(sandwich_write(b.var(x), b.var(y), b.var(outer), 1)), before) > 1e-2);
}

TEST_CASE("post norms: a very strong stream hides the branch", "[op]") {
  Branch<double> b(13);
  const auto needs = norm(b.values(x), b.values(outer), 0);
  CHECK(error_of(copy_of(post_norm_write(b.var(x), b.var(y), b.var(outer), 1e-6, 1e9)), needs) < 1e-8);
  CHECK(error_of(copy_of(post_norm_write(b.var(x), b.var(y), b.var(outer), 1e-6, 1)), needs) > 1e-2);
}

TEST_CASE("rms_norm: a factor stands on the result", "[op]") {
  for (const int d : {5, 16}) {
    Branch<double> b(d);
    auto needs = norm(b.values(x), b.values(g), eps);
    for (double& v : needs) v *= 0.6;
    CHECK(error_of(copy_of(rms_norm(b.var(x), b.var(g), eps, 0.6)), needs) < 1e-14);
    needs = norm(weighted(1, b.values(x), b.values(y)), b.values(g), eps);
    for (double& v : needs) v *= 0.6;
    const auto [next, u] = add_rms_norm(b.var(x), b.var(y), b.var(g), eps, 0.6);
    CHECK(error_of(u.values(), needs) < 1e-14);
    CHECK(error_of(next.values(), weighted(1, b.values(x), b.values(y))) < 1e-15);  // not on the stream
    b.tape.clear();
  }
}

TEST_CASE("post norms: a branch of zeros gives finite gradients", "[op]") {
  Branch<double> b(9);
  for (auto& v : b.at(y).values()) v = 0;
  const auto [next, u] = sandwich_advance(b.var(x), b.var(y), b.var(outer), b.var(g), 1e-6);
  CHECK(copy_of(next) == b.values(x));
  b.tape.backward(add(probe(next, 1), probe(u, 2)));
  for (int i = 0; i < 4; ++i) for (const double v : b.grads(i)) CHECK(std::isfinite(v));
}

TEST_CASE("post norms: reject wrong shapes, saying which", "[op]") {
  Bench<double> b({{2, 8}, {2, 7}, {8}});
  CHECK_THROWS_AS(sandwich_write(b.var(0), b.var(1), b.var(2), 1e-6), shape_error);
  CHECK_THROWS_WITH(sandwich_write(b.var(0), b.var(1), b.var(2), 1e-6), "sandwich_write: y has shape (2, 7), needs (2, 8)");
  CHECK_THROWS_WITH(sandwich_advance(b.var(0), b.var(1), b.var(2), b.var(2), 1e-6), "sandwich_advance: y has shape (2, 7), needs (2, 8)");
  CHECK_THROWS_WITH(post_norm_write(b.var(0), b.var(1), b.var(2), 1e-6, 1), "post_norm_write: y has shape (2, 7), needs (2, 8)");
  CHECK_THROWS_WITH(post_norm_advance(b.var(0), b.var(1), b.var(2), b.var(2), 1e-6, 1), "post_norm_advance: y has shape (2, 7), needs (2, 8)");
}

TEST_CASE("post norms: reject gains of another width, saying which", "[op]") {
  Bench<double> b({{2, 8}, {7}, {8}});
  const auto X = b.var(0), narrow = b.var(1), gain = b.var(2);
  const std::string first = "row program: parameter 0 has shape (7), needs 8 elements (2 tokens, width 8)";
  const std::string second = "row program: parameter 1 has shape (7), needs 8 elements (2 tokens, width 8)";
  CHECK(message_of([&] { sandwich_write(X, X, narrow, 1e-6); }) == first);
  CHECK(message_of([&] { sandwich_advance(X, X, narrow, gain, 1e-6); }) == first);
  CHECK(message_of([&] { sandwich_advance(X, X, gain, narrow, 1e-6); }) == second);
  CHECK(message_of([&] { post_norm_write(X, X, narrow, 1e-6, 1); }) == first);
  CHECK(message_of([&] { post_norm_advance(X, X, narrow, gain, 1e-6, 1); }) == first);
  CHECK(message_of([&] { post_norm_advance(X, X, gain, narrow, 1e-6, 1); }) == second);
}
