// mHC on the tape against plain loops: coefficients, reading, writing, for every number of streams.
#include "depthbench/backend/cpu.hpp"
#include "depthbench/op/mhc.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

constexpr double norm_eps = 1e-2;
using List = std::vector<double>;

template <class R> struct Streams {
  enum { phi, bias, alpha_pre, alpha_post, alpha_res, gain, x, y };
  int tokens, n, d, iterations;
  double eps = 1e-2, sinkhorn_eps = 1e-6;  // eps large, so that its place shows
  Bench<R> b;
  Streams(int tokens_, int n_, int d_, int iterations_ = 7, int threads = 2)
      : tokens(tokens_), n(n_), d(d_), iterations(iterations_),
        b({{n_ * d_, n_ * n_ + 2 * n_}, {n_ * n_ + 2 * n_}, {}, {}, {}, {d_}, {tokens_, n_ * d_}, {tokens_, d_}}, threads) {
    for (auto& p : b.at(phi).values()) p /= R(std::sqrt(double(n * d)));  // logits of size 1, whatever the width
    *b.at(alpha_pre).value = R(0.7), *b.at(alpha_post).value = R(-1.3), *b.at(alpha_res).value = R(0.9);
  }
  int count() const { return n * n + 2 * n; }
  VarOf<R> coefficients(VarOf<R> streams) {
    const auto v = [&](int i) { return b.var(i); };
    return mhc_coefficients<Cpu, R>({v(phi), v(bias), v(alpha_pre), v(alpha_post), v(alpha_res)}, streams, stream_squares(streams),
                                    {n, iterations, eps, sinkhorn_eps});
  }
  // c, u, x', squares', of one connection
  std::array<VarOf<R>, 4> run() {
    const auto streams = b.var(x);
    const auto c = coefficients(streams);
    const auto u = mhc_read(streams, c, b.var(gain), n, norm_eps);
    const auto [next, squares] = mhc_write(streams, c, b.var(y), n);
    return {c, u, next, squares};
  }
  VarOf<R> loss() {
    const auto v = run();
    auto sum = probe(v[0], 1);
    for (std::uint64_t i = 1; i < 4; ++i) sum = add(sum, probe(v[i], 1 + i));
    return sum;
  }
  double at(int i, int k) { return double(b.at(i).value[k]); }

  // ---- one token in plain loops
  List plain_coefficients(int t) {
    double square = 0;
    for (int i = 0; i < n * d; ++i) square += at(x, t * n * d + i) * at(x, t * n * d + i);
    const double r = 1 / std::sqrt(square / (n * d) + eps);
    List z;
    for (int k = 0; k < count(); ++k) {
      double m = 0;
      for (int i = 0; i < n * d; ++i) m += at(x, t * n * d + i) * r * at(phi, i * count() + k);
      z.push_back((k < n ? at(alpha_pre, 0) : k < 2 * n ? at(alpha_post, 0) : at(alpha_res, 0)) * m + at(bias, k));
    }
    for (int k = 0; k < 2 * n; ++k) z[std::size_t(k)] = (k < n ? 1 : 2) / (1 + std::exp(-z[std::size_t(k)]));
    const auto h = [&](int o, int i) -> double& { return z[std::size_t(2 * n + o * n + i)]; };
    const auto divide = [&](bool columns, double added) {
      for (int a = 0; a < n; ++a) {
        double sum = added;
        for (int k = 0; k < n; ++k) sum += columns ? h(k, a) : h(a, k);
        for (int k = 0; k < n; ++k) (columns ? h(k, a) : h(a, k)) /= sum;
      }
    };
    for (int o = 0; o < n; ++o) for (int i = 0; i < n; ++i) h(o, i) = std::exp(h(o, i));
    divide(false, 0);
    for (int k = 2 * n; k < count(); ++k) z[std::size_t(k)] += sinkhorn_eps;
    for (int t2 = 0; t2 < iterations; ++t2) {
      if (t2 > 0) divide(false, sinkhorn_eps);
      divide(true, sinkhorn_eps);
    }
    return z;
  }
  List plain_read(int t, const List& c) {
    List u(std::size_t(d), 0);
    double square = 0;
    for (int j = 0; j < d; ++j) {
      for (int s = 0; s < n; ++s) u[std::size_t(j)] += c[std::size_t(s)] * at(x, (t * n + s) * d + j);
      square += u[std::size_t(j)] * u[std::size_t(j)];
    }
    for (int j = 0; j < d; ++j) u[std::size_t(j)] *= at(gain, j) / std::sqrt(square / d + norm_eps);
    return u;
  }
  List plain_write(int t, const List& c) {
    List next;
    for (int o = 0; o < n; ++o) for (int j = 0; j < d; ++j) {
      double sum = c[std::size_t(n + o)] * at(y, t * d + j);
      for (int s = 0; s < n; ++s) sum += c[std::size_t(2 * n + o * n + s)] * at(x, (t * n + s) * d + j);
      next.push_back(sum);
    }
    return next;
  }
};

template <class R> void equals_loops(int n, int d, double limit) {
  Streams<R> m(19, n, d);
  List c(std::size_t(m.count() * 19)), u, next, squares;
  for (int t = 0; t < 19; ++t) {
    const auto one = m.plain_coefficients(t);
    for (int k = 0; k < m.count(); ++k) c[std::size_t(k * 19 + t)] = one[std::size_t(k)];
    const auto read = m.plain_read(t, one), written = m.plain_write(t, one);
    u.insert(u.end(), read.begin(), read.end());
    next.insert(next.end(), written.begin(), written.end());
    squares.push_back(0);
    for (const double v : written) squares.back() += v * v;
  }
  const auto has = m.run();
  CAPTURE(n, d, limit);
  CHECK(has[0].shape() == Shape{m.count(), 19});
  CHECK(error_of(has[0].values(), c) < limit);
  CHECK(error_of(has[1].values(), u) < 8 * limit);  // a branch input may nearly cancel
  CHECK(error_of(has[2].values(), next) < limit);
  CHECK(error_of(has[3].values(), squares) < 2 * limit);
  m.b.tape.clear();
}

}  // namespace

TEST_CASE("mhc: equals its formula for any number of streams and width", "[op]") {
  for (const int n : {1, 2, 3, 4, 5, 6, 7, 8}) for (const int d : {1, 5, 16, 33}) equals_loops<double>(n, d, 1e-12);
}

// Float: a projection of n d products rounds like sqrt(n d) of them; 13 half steps of n + 2 operations each follow.
TEST_CASE("mhc: float agrees too", "[op]") {
  for (const int n : {1, 2, 3, 4, 5, 8}) for (const int d : {5, 64})
    equals_loops<float>(n, d, (8 * std::sqrt(double(n * d)) + 13 * (n + 2)) * 0x1p-24);
}

TEST_CASE("mhc: gradient agrees with finite differences", "[op]") {
  for (const auto& [n, d] : {std::pair{1, 5}, {2, 7}, {3, 6}, {4, 5}, {4, 17}, {5, 3}, {8, 2}}) {
    Streams<double> m(6, n, d);
    const auto check = m.b.check([&] { return m.loss(); });
    CAPTURE(n, d, check.parameter);
    CHECK(check.worst < 2e-7);
  }
}

TEST_CASE("mhc: fused programs and plain composition agree in values and gradients", "[op]") {
  for (const int n : {2, 4}) for (const int d : {1, 5, 16, 33}) {
    Streams<double> m(19, n, d);
    const std::int64_t N = 19;
    const auto with_grads = [&](auto f) {
      m.b.parameters.clear_grads();
      const auto streams = m.b.var(m.x);
      const std::array<VarOf<double>, 3> v = f(streams, m.coefficients(streams));
      std::vector<List> all{copy_of(v[0]), copy_of(v[1]), copy_of(v[2])};
      m.b.tape.backward(add(probe(v[0], 1), add(probe(v[1], 2), probe(v[2], 3))));
      for (int i = 0; i < 8; ++i) all.push_back(m.b.grads(i));
      return all;
    };
    const auto fused = with_grads([&](auto streams, auto c) {
      const auto [next, squares] = mhc_write(streams, c, m.b.var(m.y), n);
      return std::array{mhc_read(streams, c, m.b.var(m.gain), n, norm_eps), next, squares};
    });
    const auto plain = with_grads([&](auto streams, auto c) {
      const auto mixed = mix_streams(c, {2 * n * N, 1, N, n * N}, n, streams, n);
      const auto next = write_streams(c, {n * N, 1, N, 0}, mixed, m.b.var(m.y), n);
      return std::array{rms_norm(mix_streams(c, {0, 1, N, 0}, 1, streams, n), m.b.var(m.gain), norm_eps), next, stream_squares(next)};
    });
    CAPTURE(n, d);
    for (std::size_t i = 0; i < fused.size(); ++i) CHECK(error_of(fused[i], plain[i]) < 1e-12);
  }
}

TEST_CASE("mhc: rows of H_res are destinations", "[op]") {
  for (const int n : {2, 3, 4}) {
    Streams<double> m(2, n, 3);
    m.iterations = 1;
    for (auto& p : m.b.at(m.phi).values()) p = 0;
    for (auto& p : m.b.at(m.bias).values()) p = -40;
    m.b.at(m.bias).value[2 * n + n - 1] = 40;                                      // all of row 0 comes from the last stream ...
    for (int o = 1; o < n; ++o) m.b.at(m.bias).value[2 * n + o * n + o - 1] = 40;  // ... and row o from stream o - 1
    const auto next = copy_of(mhc_write(m.b.var(m.x), m.coefficients(m.b.var(m.x)), m.b.var(m.y), n)[0]);
    CAPTURE(n);
    for (int t = 0; t < 2; ++t) for (int o = 0; o < n; ++o) for (int j = 0; j < 3; ++j)
      CHECK(next[std::size_t((t * n + o) * 3 + j)] == Approx(m.at(m.x, (t * n + (o + n - 1) % n) * 3 + j)).margin(1e-4));
    m.b.tape.clear();
  }
}

TEST_CASE("mhc: unit column sums keep the sum of the streams", "[op]") {
  for (const int n : {1, 2, 3, 4, 8}) {
    Streams<double> m(9, n, 5, 20);
    const auto v = m.run();
    const auto c = copy_of(v[0]), next = copy_of(v[2]);
    CAPTURE(n);
    for (int t = 0; t < 9; ++t) {
      for (int i = 0; i < n; ++i) {
        double column = 0;
        for (int o = 0; o < n; ++o) column += c[std::size_t((2 * n + o * n + i) * 9 + t)];
        CHECK(column == Approx(1).margin(2e-6));
      }
      double post = 0;
      for (int o = 0; o < n; ++o) post += c[std::size_t((n + o) * 9 + t)];
      for (int j = 0; j < 5; ++j) {
        double before = post * m.at(m.y, t * 5 + j), after = 0, size = 0;
        for (int s = 0; s < n; ++s) {
          before += m.at(m.x, (t * n + s) * 5 + j);
          size += std::fabs(m.at(m.x, (t * n + s) * 5 + j));
          after += next[std::size_t((t * n + s) * 5 + j)];
        }
        CHECK(std::fabs(after - before) < 2e-6 * size);
      }
    }
    m.b.tape.clear();
  }
}

TEST_CASE("mhc: biases of zero read halves, write ones and mix evenly", "[op]") {
  Streams<double> m(3, 4, 5, 20);
  for (auto& p : m.b.at(m.phi).values()) p = 0;
  for (auto& p : m.b.at(m.bias).values()) p = 0;
  const auto c = copy_of(m.coefficients(m.b.var(m.x)));
  for (int k = 0; k < 24; ++k) for (int t = 0; t < 3; ++t) CHECK(c[std::size_t(k * 3 + t)] == Approx(k < 4 ? 0.5 : k < 8 ? 1 : 0.25).epsilon(2e-6));
}

TEST_CASE("mhc: saturated logits give finite coefficients and gradients, in float", "[op]") {
  for (const int n : {1, 2, 3, 4, 8}) {
    Streams<float> m(17, n, 6, 64);
    for (auto& p : m.b.at(m.bias).values()) p = p > 0 ? 80.f : -80.f;
    const auto v = m.run();
    for (const auto& value : v) for (const float a : value.values()) REQUIRE(std::isfinite(a));
    m.b.tape.clear();
    m.b.tape.backward(m.loss());
    for (int i = 0; i < 8; ++i) for (const float g : m.b.grads(i)) REQUIRE(std::isfinite(g));
  }
}

TEST_CASE("mhc: recomputed or on any number of threads, the same bits", "[op]") {
  std::vector<std::vector<float>> first;
  for (const int threads : {1, 2, 3}) for (const bool again : {false, true}) {
    Streams<float> m(50, 4, 9, 7, threads);
    const auto out = again ? m.b.tape.recompute([&m] { return std::vector{m.loss()}; })[0] : m.loss();
    m.b.tape.backward(out);
    std::vector<std::vector<float>> grads;
    for (int i = 0; i < 8; ++i) grads.push_back(m.b.grads(i));
    if (first.empty()) first = grads;
    CHECK((grads == first));
  }
}

TEST_CASE("mhc: a token changes no other", "[op]") {
  Streams<float> m(37, 3, 6);
  const auto before = copy_of(m.run()[2]);
  for (int i = 0; i < 18; ++i) m.b.at(m.x).value[20 * 18 + i] += 1;
  const auto after = copy_of(m.run()[2]);
  for (int t = 0; t < 37; ++t) CHECK(std::equal(before.begin() + t * 18, before.begin() + (t + 1) * 18, after.begin() + t * 18) == (t != 20));
}

TEST_CASE("mhc: rejects wrong shapes and numbers of streams, saying which", "[op]") {
  Streams<double> m(4, 2, 6);
  const auto with = [&](int phi, int bias, int x, int n) {
    return message_of([&] {
      auto& b = m.b;
      const auto streams = b.var(x);
      mhc_coefficients<Cpu, double>({b.var(phi), b.var(bias), b.var(2), b.var(3), b.var(4)}, streams, stream_squares(streams), {n, 3});
    });
  };
  CHECK(with(m.phi, m.bias, m.x, 2) == "(nothing was thrown)");
  CHECK(with(m.x, m.bias, m.x, 2) == "mhc_coefficients: phi has shape (4, 12), needs (12, 8)");
  CHECK(with(m.phi, m.gain, m.x, 2) == "mhc_coefficients: b has shape (6), needs (8)");
  CHECK(with(m.phi, m.bias, m.y, 2) == "mhc_coefficients: phi has shape (12, 8), needs (6, 8)");
  Bench<double> nine({{9, 99}, {99}, {}, {}, {}, {1, 9}});
  CHECK(message_of([&] {
    const auto streams = nine.var(5);
    mhc_coefficients<Cpu, double>({nine.var(0), nine.var(1), nine.var(2), nine.var(3), nine.var(4)}, streams, stream_squares(streams), {9, 3});
  }) == "mhc: 9 streams, needs 1 to 8");
  for (const int iterations : {0, 65})
    CHECK(message_of([&] {
      const auto streams = nine.var(5);
      mhc_coefficients<Cpu, double>({nine.var(0), nine.var(1), nine.var(2), nine.var(3), nine.var(4)}, streams, stream_squares(streams), {9, iterations});
    }) == fmt::format("mhc_coefficients: {} iterations, needs 1 to 64", iterations));
  for (const int n : {2, 3}) {  // a fused program, and the plain composition
    Streams<double> two(4, n, 6);
    auto& b = two.b;
    Bench<double> odd({{1}, {4, 5}, {8, 4}, {4, 6 * n + 1}, {5, 6}});
    const auto other = [&](int i) { return b.tape.use(odd.at(i)); };
    const auto x = b.var(two.x), y = b.var(two.y), gain = b.var(two.gain), c = two.coefficients(x);
    const int count = n * n + 2 * n;
    CAPTURE(n);
    CHECK(message_of([&] { mhc_read(x, c, gain, n, 1.0); }) == "(nothing was thrown)");
    CHECK(message_of([&] { mhc_read(x, c, other(0), n, 1.0); }) == "mhc_read: gain has shape (1), needs (6)");
    CHECK(message_of([&] { mhc_read(x, y, gain, n, 1.0); }) == fmt::format("mhc_read: c has shape (4, 6), needs ({}, 4)", count));
    CHECK(message_of([&] { mhc_read(other(3), c, gain, n, 1.0); }) ==
          fmt::format("mhc_read: x has shape (4, {}), needs columns for {} streams", 6 * n + 1, n));
    CHECK(message_of([&] { mhc_write(x, c, y, n); }) == "(nothing was thrown)");
    CHECK(message_of([&] { mhc_write(x, c, other(1), n); }) == "mhc_write: y has shape (4, 5), needs (4, 6)");
    CHECK(message_of([&] { mhc_write(x, c, other(4), n); }) == "mhc_write: y has shape (5, 6), needs (4, 6)");
    CHECK(message_of([&] { mhc_write(x, y, y, n); }) == fmt::format("mhc_write: c has shape (4, 6), needs ({}, 4)", count));
    const auto coefficients = [&](VarOf<double> alpha, VarOf<double> squares) {
      return message_of([&] {
        mhc_coefficients<Cpu, double>({b.var(two.phi), b.var(two.bias), b.var(2), alpha, b.var(4)}, x, squares, {n, 3});
      });
    };
    CHECK(coefficients(b.var(3), stream_squares(x)) == "(nothing was thrown)");
    CHECK(coefficients(other(0), stream_squares(x)) == "mhc_coefficients: alpha_post has shape (1), needs ()");
    CHECK(coefficients(b.var(3), y) == "mhc_coefficients: squares has shape (4, 6), needs (4, 1)");
  }
}
