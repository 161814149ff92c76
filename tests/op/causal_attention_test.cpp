// Attention against a plain O(T^2) one that turns pairs as complex numbers and keeps every probability.
#include "depthbench/op/causal_attention.hpp"

#include <complex>

#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

constexpr double theta = 100;

struct Naive {
  AttentionShape s;
  std::vector<double> q, k, v;                   // (B T, H h), (B T, Hkv h), (B T, Hkv h)
  std::vector<double> out, dq, dk, dv;

  static void turn(std::vector<double>& x, int rows, int seq, int heads, int h, double sign) {
    for (int r = 0; r < rows; ++r) for (int a = 0; a < heads; ++a) for (int j = 0; j < h / 2; ++j) {
          double &re = x[std::size_t((r * heads + a) * h + j)],
                 &im = x[std::size_t((r * heads + a) * h + j + h / 2)];
          const auto z =
              std::complex(re, im) * std::polar(1.0, sign * (r % seq) * std::pow(theta, -2.0 * j / h));
          re = z.real();
          im = z.imag();
    }
  }
  void run(const std::vector<double>& dout) {
    const int rows = s.batch * s.seq, h = s.head_dim;
    auto qr = q, kr = k;
    turn(qr, rows, s.seq, s.heads, h, 1);
    turn(kr, rows, s.seq, s.kv_heads, h, 1);
    out.assign(q.size(), 0);
    dq.assign(q.size(), 0);
    dk.assign(k.size(), 0);
    dv.assign(k.size(), 0);
    const double scale = 1 / std::sqrt(double(h));
    for (int b = 0; b < s.batch; ++b) for (int a = 0; a < s.heads; ++a) for (int t = 0; t < s.seq; ++t) {
      const int kv = a / (s.heads / s.kv_heads);
      const auto query = std::size_t(((b * s.seq + t) * s.heads + a) * h);
      const auto key = [&](int u) { return std::size_t(((b * s.seq + u) * s.kv_heads + kv) * h); };
      std::vector<double> p;
      double sum = 0, top = -INFINITY, inner = 0;
      for (int u = 0; u <= t; ++u) {
        double z = 0;
        for (int j = 0; j < h; ++j) z += qr[query + std::size_t(j)] * kr[key(u) + std::size_t(j)];
        p.push_back(z * scale);
        top = std::max(top, z * scale);
      }
      for (double& z : p) sum += z = std::exp(z - top);
      std::vector<double> dp(p.size());
      for (int u = 0; u <= t; ++u) {
        p[std::size_t(u)] /= sum;
        for (int j = 0; j < h; ++j) {
          out[query + std::size_t(j)] += p[std::size_t(u)] * v[key(u) + std::size_t(j)];
          dp[std::size_t(u)] += dout[query + std::size_t(j)] * v[key(u) + std::size_t(j)];
          dv[key(u) + std::size_t(j)] += p[std::size_t(u)] * dout[query + std::size_t(j)];
        }
        inner += p[std::size_t(u)] * dp[std::size_t(u)];
      }
      for (int u = 0; u <= t; ++u) for (int j = 0; j < h; ++j) {
        const double dz = p[std::size_t(u)] * (dp[std::size_t(u)] - inner) * scale;
        dq[query + std::size_t(j)] += dz * kr[key(u) + std::size_t(j)];
        dk[key(u) + std::size_t(j)] += dz * qr[query + std::size_t(j)];
      }
    }
    turn(dq, rows, s.seq, s.heads, h, -1);
    turn(dk, rows, s.seq, s.kv_heads, h, -1);
  }
};

std::array<Shape, 3> shapes_of(const AttentionShape& s) {
  const std::int64_t n = std::int64_t(s.batch) * s.seq;
  return {Shape{n, s.width()}, Shape{n, s.kv_width()}, Shape{n, s.kv_width()}};
}

template <class R> void agrees(const AttentionShape& s, double limit) {
  CAPTURE(s.batch, s.seq, s.heads, s.kv_heads, s.head_dim);
  const auto [a, b, c] = shapes_of(s);
  Bench<R> bench({a, b, c});
  const RopeTable<R> rope(s.seq + 3, s.head_dim, theta);
  Naive naive{s, {}, {}, {}, {}, {}, {}, {}};
  for (auto [to, i] : {std::pair{&naive.q, 0}, {&naive.k, 1}, {&naive.v, 2}}) {
    const auto x = bench.values(i);
    to->assign(x.begin(), x.end());
  }
  const auto w = probe_weights<R>(naive.q.size());
  naive.run({w.begin(), w.end()});
  for (int pass = 1; pass <= 2; ++pass) {  // the second adds to the gradients of the first
    const auto out = causal_attention(bench.var(0), bench.var(1), bench.var(2), s, rope);
    CHECK(error_of(out.values(), naive.out) < limit);
    bench.tape.backward(probe(out));
    int i = 0;
    for (auto* needs : {&naive.dq, &naive.dk, &naive.dv}) {
      auto scaled = *needs;
      for (double& x : scaled) x *= pass;
      CHECK(error_of(bench.grads(i++), scaled) < 4 * limit);
    }
  }
}

}  // namespace

TEST_CASE("attention: equals plain attention, forward and backward, at every head size and tile border",
          "[op]") {
  for (const int h : {2, 6, 16, 20, 40, 64}) agrees<double>({2, 13, 2, 1, h}, 1e-13);
  for (const int T : {1, 2, 47, 48, 49, 96, 97}) agrees<double>({2, T, 2, 2, 6}, 1e-13);
  for (const auto& [heads, kv] : {std::pair{1, 1}, {4, 4}, {4, 2}, {4, 1}, {6, 3}})
    agrees<double>({2, 20, heads, kv, 4}, 1e-13);
  agrees<double>({1, 600, 2, 1, 6}, 1e-12);  // more keys than one piece of 512
}

TEST_CASE("attention: float agrees too", "[op]") {
  for (const int h : {2, 16, 20, 64}) agrees<float>({2, 49, 4, 2, h}, 2e-6);
  agrees<float>({1, 600, 2, 1, 16}, 5e-6);
}

TEST_CASE("attention: gradient agrees with finite differences", "[op]") {
  const AttentionShape s{2, 9, 4, 2, 6};
  const auto [a, b, c] = shapes_of(s);
  Bench<double> bench({a, b, c});
  const RopeTable<double> rope(9, 6, theta);
  CHECK(
      bench.check([&] { return probe(causal_attention(bench.var(0), bench.var(1), bench.var(2), s, rope)); })
          .worst < 1e-7);
  CHECK(
      bench.check([&] { return probe(causal_attention(bench.var(0), bench.var(1), bench.var(1), s, rope)); })
          .worst < 1e-7);  // keys as values
}

TEST_CASE("attention: what comes later changes nothing before it", "[op]") {
  const AttentionShape s{2, 100, 2, 1, 8};
  const auto [a, b, c] = shapes_of(s);
  Bench<float> bench({a, b, c});
  const RopeTable<float> rope(100, 8, theta);
  const auto run = [&] {
    return copy_of(causal_attention(bench.var(0), bench.var(1), bench.var(2), s, rope));
  };
  const auto before = run();
  for (const int changed : {99, 70, 48, 47, 1}) {
    Bench<float> fresh({a, b, c});
    for (int i = 0; i < 3; ++i) {
      const int w = i == 0 ? s.width() : s.kv_width();
      for (int j = 0; j < w; ++j)
        bench.at(i).value[changed * w + j] =
            fresh.at(i).value[changed * w + j] + 3.f;  // of row 0 of the batch
    }
    const auto after = run();
    const auto middle = std::ptrdiff_t(changed) * s.width(), second = std::ptrdiff_t(100) * s.width();
    CHECK(std::equal(before.begin(), before.begin() + middle, after.begin()));
    CHECK_FALSE(
        std::equal(before.begin() + middle, before.begin() + middle + s.width(), after.begin() + middle));
    CHECK(std::equal(before.begin() + second, before.end(),
                     after.begin() + second));  // the other row of the batch
    for (int i = 0; i < 3; ++i)
      std::copy(fresh.at(i).value, fresh.at(i).value + fresh.at(i).numel(), bench.at(i).value);
  }
}

TEST_CASE("attention: a query head reads its own KV head", "[op]") {
  const AttentionShape s{1, 5, 4, 2, 4};
  const auto [a, b, c] = shapes_of(s);
  Bench<double> bench({a, b, c});
  const RopeTable<double> rope(5, 4, theta);
  const auto run = [&] {
    return copy_of(causal_attention(bench.var(0), bench.var(1), bench.var(2), s, rope));
  };
  const auto before = run();
  for (int t = 0; t < 5; ++t)
    for (int j = 4; j < 8; ++j) bench.at(2).value[t * 8 + j] += 1;  // values of KV head 1
  const auto after = run();
  for (int t = 0; t < 5; ++t) for (int head = 0; head < 4; ++head) {
    const auto at = std::size_t(t * 16 + head * 4);
    CHECK((after[at] == Approx(before[at] + (head >= 2 ? 1 : 0)).margin(1e-14)));
  }
}

TEST_CASE("attention: positions matter only by their distance", "[op]") {
  const AttentionShape s{1, 3, 1, 1, 8};
  Bench<double> bench({{3, 8}, {3, 8}, {3, 8}});
  RopeTable<double> rope(9, 8, theta), later;
  later.seq = 3;
  later.head_dim = 8;
  later.cos.assign(rope.cos.begin() + 6 * 4, rope.cos.end());
  later.sin.assign(rope.sin.begin() + 6 * 4, rope.sin.end());
  const auto here = copy_of(causal_attention(bench.var(0), bench.var(1), bench.var(2), s, rope));
  const auto there = copy_of(causal_attention(bench.var(0), bench.var(1), bench.var(2), s, later));
  CHECK(error_of(there, here) < 1e-14);
}

TEST_CASE("attention: scores of thousands stay finite", "[op]") {
  const AttentionShape s{1, 60, 1, 1, 4};
  Bench<float> bench({{60, 4}, {60, 4}, {60, 4}});
  for (int i = 0; i < 240; ++i) bench.at(0).value[i] *= 300, bench.at(1).value[i] *= 300;
  const RopeTable<float> rope(60, 4, theta);
  const auto out = causal_attention(bench.var(0), bench.var(1), bench.var(2), s, rope);
  for (const float x : out.values()) CHECK(std::isfinite(x));
  bench.tape.backward(probe(out));
  for (int i = 0; i < 3; ++i)
    for (const float g : bench.grads(i))
      if (!std::isfinite(g)) FAIL("gradient " << i << " is not finite");
}

TEST_CASE("attention: rejects wrong shapes, saying which", "[op]") {
  Bench<double> b({{6, 8}, {6, 4}, {6, 4}, {5, 4}});
  const RopeTable<double> rope(3, 4, theta);
  const auto run = [&](AttentionShape s, int q, int k, int v, const RopeTable<double>& r) {
    return message_of([&] { causal_attention(b.var(q), b.var(k), b.var(v), s, r); });
  };
  CHECK(run({2, 3, 2, 1, 4}, 0, 1, 2, rope) == "(nothing was thrown)");
  CHECK(run({2, 3, 2, 1, 4}, 1, 1, 2, rope) == "causal_attention: q has shape (6, 4), needs (6, 8)");
  CHECK(run({2, 3, 2, 1, 4}, 0, 3, 2, rope) == "causal_attention: k has shape (5, 4), needs (6, 4)");
  CHECK(run({2, 3, 2, 1, 4}, 0, 1, 3, rope) == "causal_attention: v has shape (5, 4), needs (6, 4)");
  CHECK(run({2, 3, 3, 2, 4}, 0, 1, 2, rope) ==
        "causal_attention: 3 query heads do not divide into 2 KV heads");
  CHECK(run({2, 3, 3, 0, 4}, 0, 1, 2, rope) ==
        "causal_attention: 3 query heads do not divide into 0 KV heads");
  CHECK(run({2, 3, 2, 1, 4}, 0, 1, 2, RopeTable<double>(2, 4, theta)) ==
        "causal_attention: the rope table is for 2 positions and head size 4, needs 3 and 4");
  CHECK(run({2, 3, 2, 1, 4}, 0, 1, 2, RopeTable<double>(3, 8, theta)) ==
        "causal_attention: the rope table is for 3 positions and head size 8, needs 3 and 4");
}
