// Hyper-Connections: fused programs, plain composition and plain loops against each other.
#include "depthbench/op/hyper_connection.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;
using V = VarOf<double>;

namespace {

constexpr double stream_eps = 1e-3, norm_eps = 1e-2;  // large, so that their places show

struct Streams {
  int tokens, n, d;
  Bench<double> b;
  enum { alpha, alpha_proj, alpha_scale, beta, beta_proj, beta_scale, gain, x, y };
  Streams(int tokens_, int n_, int d_)
      : tokens(tokens_), n(n_), d(d_),
        b({{n_, n_ + 1}, {d_, n_ + 1}, {}, {n_}, {d_}, {}, {d_}, {tokens_, n_ * d_}, {tokens_, d_}}) {}
  HyperTables<Cpu, double> tables() {
    return hyper_tables(b.var(alpha), b.var(alpha_proj), b.var(alpha_scale), b.var(beta), b.var(beta_proj),
                        b.var(beta_scale));
  }

  // The paper's formula on streams h, one token: coefficients (n, n + 2) and branch input (d).
  std::vector<double> coefficients(const double* h) {
    std::vector<double> c;
    for (int s = 0; s < n; ++s) {
      double square = 0;
      for (int i = 0; i < d; ++i) square += h[s * d + i] * h[s * d + i];
      const double r = 1 / std::sqrt(square / d + stream_eps);
      for (int j = 0; j <= n; ++j) {
        double dot = 0;
        for (int i = 0; i < d; ++i) dot += r * h[s * d + i] * b.at(alpha_proj).value[i * (n + 1) + j];
        c.push_back(b.at(alpha).value[s * (n + 1) + j] + *b.at(alpha_scale).value * std::tanh(dot));
      }
      double dot = 0;
      for (int i = 0; i < d; ++i) dot += r * h[s * d + i] * b.at(beta_proj).value[i];
      c.push_back(b.at(beta).value[s] + *b.at(beta_scale).value * std::tanh(dot));
    }
    return c;
  }
  std::vector<double> input(const double* h, const std::vector<double>& c) {
    std::vector<double> u(std::size_t(d), 0);
    double square = 0;
    for (int i = 0; i < d; ++i) {
      for (int s = 0; s < n; ++s) u[std::size_t(i)] += c[std::size_t(s * (n + 2))] * h[s * d + i];
      square += u[std::size_t(i)] * u[std::size_t(i)];
    }
    for (int i = 0; i < d; ++i) u[std::size_t(i)] *= b.at(gain).value[i] / std::sqrt(square / d + norm_eps);
    return u;
  }
  std::vector<double> write(const double* h, const std::vector<double>& c, const double* out) {
    std::vector<double> next;
    for (int o = 0; o < n; ++o) for (int i = 0; i < d; ++i) {
      double sum = c[std::size_t(o * (n + 2) + n + 1)] * out[i];
      for (int s = 0; s < n; ++s) sum += c[std::size_t(s * (n + 2) + o + 1)] * h[s * d + i];
      next.push_back(sum);
    }
    return next;
  }
};

void extend(std::vector<double>& all, const std::vector<double>& part) {
  all.insert(all.end(), part.begin(), part.end());
}

// Outputs and all gradients of read, write and the next read.
struct Result {
  std::vector<double> c, u, next, u2, c2;
  std::vector<std::vector<double>> grads;
};
template <class F> Result run(Streams& m, F chain) {
  m.b.parameters.clear_grads();
  const std::array<V, 5> v = chain();
  Result r{copy_of(v[0]), copy_of(v[1]), copy_of(v[2]), copy_of(v[3]), copy_of(v[4]), {}};
  auto loss = probe(v[0], 1);
  for (std::uint64_t i = 1; i < 5; ++i) loss = add(loss, probe(v[i], 1 + i));
  m.b.tape.backward(loss);
  for (int i = 0; i < 9; ++i) r.grads.push_back(m.b.grads(i));
  return r;
}
std::array<V, 5> read_and_advance(Streams& m) {
  auto& b = m.b;
  const auto [u, c] = hyper_read(m.tables(), b.var(m.gain), b.var(m.x), stream_eps, norm_eps);
  const auto [next, u2, c2] =
      hyper_advance(m.tables(), b.var(m.gain), b.var(m.x), c, b.var(m.y), stream_eps, norm_eps);
  return {c, u, next, u2, c2};
}
std::array<V, 5> step_by_step(Streams& m, bool plain) {
  auto& b = m.b;
  const auto read = [&](V x) {
    return plain ? hyper_read_plain(m.tables(), b.var(m.gain), x, stream_eps, norm_eps)
                 : hyper_read(m.tables(), b.var(m.gain), x, stream_eps, norm_eps);
  };
  const auto [u, c] = read(b.var(m.x));
  const auto next =
      plain ? hyper_write_plain(b.var(m.x), c, b.var(m.y)) : hyper_write(b.var(m.x), c, b.var(m.y));
  const auto [u2, c2] = read(next);
  return {c, u, next, u2, c2};
}
double difference(const Result& a, const Result& b) {
  double worst = std::max({error_of(a.c, b.c), error_of(a.u, b.u), error_of(a.next, b.next),
                           error_of(a.u2, b.u2), error_of(a.c2, b.c2)});
  for (std::size_t i = 0; i < 9; ++i) worst = std::max(worst, error_of(a.grads[i], b.grads[i]));
  return worst;
}

}  // namespace

TEST_CASE("hyper-connection: equals its formula for any number of streams and width", "[op]") {
  for (const int n : {1, 2, 3, 4, 5, 8}) for (const int d : {1, 5, 16, 33}) {
    Streams m(19, n, d);
    Result needs;
    for (int t = 0; t < 19; ++t) {
      const double* h = m.b.at(m.x).value + t * n * d;
      const auto c = m.coefficients(h);
      const auto next = m.write(h, c, m.b.at(m.y).value + t * d);
      extend(needs.c, c);
      extend(needs.u, m.input(h, c));
      extend(needs.next, next);
      extend(needs.c2, m.coefficients(next.data()));
      extend(needs.u2, m.input(next.data(), m.coefficients(next.data())));
    }
    const auto has = run(m, [&] { return read_and_advance(m); });
    CAPTURE(n, d);
    CHECK(error_of(has.c, needs.c) < 1e-13);
    CHECK(error_of(has.u, needs.u) < 1e-12);
    CHECK(error_of(has.next, needs.next) < 1e-13);
    CHECK(error_of(has.c2, needs.c2) < 1e-13);
    CHECK(error_of(has.u2, needs.u2) < 1e-11);  // a branch input may nearly cancel
  }
}

TEST_CASE("hyper-connection: fused, one after the other, and plain agree in values and gradients", "[op]") {
  for (const int n : {2, 4}) for (const int d : {1, 5, 16, 33, 64}) {
    Streams m(19, n, d);
    const auto plain = run(m, [&] { return step_by_step(m, true); });
    CAPTURE(n, d);
    CHECK(difference(run(m, [&] { return read_and_advance(m); }), plain) < 1e-13);
    CHECK(difference(run(m, [&] { return step_by_step(m, false); }), plain) < 1e-13);
  }
}

TEST_CASE("hyper-connection: gradient agrees with finite differences", "[op]") {
  for (const auto& [n, d] : {std::pair{1, 5}, {2, 7}, {3, 6}, {4, 5}, {4, 17}}) {
    Streams m(6, n, d);
    const auto loss = [&] {
      const auto v = read_and_advance(m);
      auto sum = probe(v[0], 1);
      for (std::uint64_t i = 1; i < 5; ++i) sum = add(sum, probe(v[i], 1 + i));
      return sum;
    };
    const auto check = m.b.check(loss);
    CAPTURE(n, d, check.parameter);
    CHECK(check.worst < 2e-7);
  }
}

TEST_CASE("hyper-connection: tables hold the parameters where the programs look for them", "[op]") {
  Streams m(1, 2, 3);
  const auto t = m.tables();
  const auto& b = m.b;
  CHECK(t.w.shape() == Shape{4, 3});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) CHECK(t.w.value()[j * 3 + i] == b.parameters.list()[1].value[i * 3 + j]);
    CHECK(t.w.value()[9 + i] == b.parameters.list()[4].value[i]);
  }
  CHECK(copy_of(t.scale) == std::vector<double>{*b.parameters.list()[2].value, *b.parameters.list()[2].value,
                                                *b.parameters.list()[2].value,
                                                *b.parameters.list()[5].value});
  for (int s = 0; s < 2; ++s) {
    for (int j = 0; j < 3; ++j) CHECK(t.table.value()[s * 4 + j] == b.parameters.list()[0].value[s * 3 + j]);
    CHECK(t.table.value()[s * 4 + 3] == b.parameters.list()[3].value[s]);
  }
  CHECK(m.b.check([&] {
             const auto tt = m.tables();
             return add(probe(tt.w, 1), add(probe(tt.scale, 2), probe(tt.table, 3)));
           })
            .worst < 1e-8);
}

TEST_CASE("hyper-connection: rejects parameters of another shape, saying which", "[op]") {
  Streams m(2, 2, 3);
  auto& b = m.b;
  CHECK_THROWS_AS(hyper_tables(b.var(1), b.var(1), b.var(2), b.var(3), b.var(4), b.var(5)), shape_error);
  const auto with = [&](int a, int p, int be, int bp) {
    return message_of([&] { hyper_tables(b.var(a), b.var(p), b.var(2), b.var(be), b.var(bp), b.var(5)); });
  };
  CHECK(with(0, 1, 3, 4) == "(nothing was thrown)");
  CHECK(with(1, 1, 3, 4) == "hyper_tables: static_alpha has shape (3, 3), needs (3, 4)");
  CHECK(with(0, 0, 3, 3) == "(nothing was thrown)");  // d = 2
  CHECK(with(0, 1, 4, 4) == "hyper_tables: static_beta has shape (3), needs (2)");
  CHECK(with(0, 1, 3, 3) == "hyper_tables: dynamic_beta_proj has shape (2), needs (3)");
  CHECK(with(0, 7, 3, 3) == "hyper_tables: dynamic_alpha_proj has shape (2, 6), needs (2, 3)");
}

TEST_CASE("hyper-connection: read, write and advance reject wrong shapes, saying which", "[op]") {
  for (const int n : {2, 3}) {  // a fused program, and the plain composition
    Streams m(4, n, 3);
    auto& b = m.b;
    Bench<double> odd({{4, n * 3 + 1}, {4, 3 * n + 3}, {5, 3}, {4, n * (n + 2) + 1}, {1}, {4, n * (n + 2)}, {4 * n * 3}, {4, 2}});
    const auto other = [&](int i) { return b.tape.use(odd.at(i)); };
    const auto read = [&](HyperTables<Cpu, double> t, V gain, V x) { return message_of([&] { hyper_read(t, gain, x, 1, 1); }); };
    const auto write = [&](V x, V c, V y) { return message_of([&] { hyper_write(x, c, y); }); };
    const auto advance = [&](V x, V c, V y) { return message_of([&] { hyper_advance(m.tables(), b.var(m.gain), x, c, y, 1, 1); }); };
    const auto x = b.var(m.x), y = b.var(m.y), c = other(5);
    const int wide = n * (n + 2);
    const auto no_y = [&](const char* y, int columns) {
      return fmt::format("hyper_write: y has shape {}, needs (4, d) to match streams of d channels in x (4, {})", y, columns);
    };
    CAPTURE(n);
    CHECK(read(m.tables(), b.var(m.gain), x) == "(nothing was thrown)");
    CHECK(read(m.tables(), b.var(m.gain), other(0)) == fmt::format("hyper_read: x has shape (4, {}), needs (4, {})", 3 * n + 1, 3 * n));
    CHECK(read(m.tables(), b.var(m.gain), other(1)) == fmt::format("hyper_read: x has shape (4, {}), needs (4, {})", 3 * n + 3, 3 * n));
    CHECK(read(m.tables(), other(4), x) == "hyper_read: gain has shape (1), needs (3)");
    auto t = m.tables();
    t.scale = other(4);
    CHECK(read(t, b.var(m.gain), x) == fmt::format("hyper_read: scale has shape (1), needs ({})", n + 2));
    t = m.tables();
    t.w = y;
    CHECK(read(t, b.var(m.gain), x) == (n == 2 ? "(nothing was thrown)" : "hyper_read: w has shape (4, 3), needs (5, 3)"));
    CHECK(write(x, c, y) == "(nothing was thrown)");
    CHECK(write(x, c, other(2)) == no_y("(5, 3)", 3 * n));
    CHECK(write(y, c, x) == no_y(x.shape().text().c_str(), 3));
    CHECK(write(other(0), c, y) == no_y("(4, 3)", 3 * n + 1));
    CHECK(write(x, other(3), y) == fmt::format("hyper_write: c has shape (4, {}), needs (4, {})", wide + 1, wide));
    CHECK(advance(x, c, y) == "(nothing was thrown)");
    CHECK(advance(x, c, other(7)) == "hyper_advance: y has shape (4, 2), needs (4, 3)");
    CHECK(advance(x, other(3), y) == fmt::format("hyper_advance: c has shape (4, {}), needs (4, {})", wide + 1, wide));
  }
  Streams m(2, 2, 3);
  Bench<double> one({{1}});
  CHECK(message_of([&] { hyper_tables(m.b.var(0), m.b.var(1), m.b.tape.use(one.at(0)), m.b.var(3), m.b.var(4), m.b.var(5)); }) ==
        "hyper_tables: dynamic_alpha_scale has shape (1), needs ()");
  CHECK(message_of([&] { hyper_tables(m.b.var(0), m.b.var(1), m.b.var(2), m.b.var(3), m.b.var(4), m.b.tape.use(one.at(0))); }) ==
        "hyper_tables: dynamic_beta_scale has shape (1), needs ()");
}
