// Attention with depth slots (MoDA) against a plain O(T^2) one: one softmax over the past and the token's own slots.
#include <complex>

#include "depthbench/op/add.hpp"
#include "depthbench/op/causal_attention.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

constexpr double theta = 100;
using List = std::vector<double>;

struct Naive {
  AttentionShape s;
  List q, k, v;                       // (B T, H h), (B T, Hkv h)
  std::vector<List> K, V;             // of every slot (B T, Hkv h)
  List out, dq, dk, dv;
  std::vector<List> dK, dV;

  void turn(List& x, int heads, double sign) const {
    for (int r = 0; r < s.batch * s.seq; ++r) for (int a = 0; a < heads; ++a) for (int j = 0; j < s.head_dim / 2; ++j) {
      double &re = x[std::size_t((r * heads + a) * s.head_dim + j)], &im = x[std::size_t((r * heads + a) * s.head_dim + j + s.head_dim / 2)];
      const auto z = std::complex(re, im) * std::polar(1.0, sign * (r % s.seq) * std::pow(theta, -2.0 * j / s.head_dim));
      re = z.real();
      im = z.imag();
    }
  }
  void run(const List& dout) {
    auto qr = q, kr = k;
    turn(qr, s.heads, 1);
    turn(kr, s.kv_heads, 1);
    out.assign(q.size(), 0);
    dq.assign(q.size(), 0);
    dk.assign(k.size(), 0);
    dv.assign(k.size(), 0);
    dK.assign(K.size(), List(k.size()));
    dV.assign(K.size(), List(k.size()));
    const int h = s.head_dim;
    const double scale = 1 / std::sqrt(double(h));
    for (int b = 0; b < s.batch; ++b) for (int a = 0; a < s.heads; ++a) for (int t = 0; t < s.seq; ++t) {
      const int kv = a / (s.heads / s.kv_heads);
      const auto at = std::size_t(((b * s.seq + t) * s.heads + a) * h);
      struct Entry { const double *key, *value; double *dkey, *dvalue; double p, dp; };
      std::vector<Entry> entries;
      const auto row = [&](int u) { return std::size_t(((b * s.seq + u) * s.kv_heads + kv) * h); };
      for (int u = 0; u <= t; ++u) entries.push_back({&kr[row(u)], &v[row(u)], &dk[row(u)], &dv[row(u)], 0, 0});
      for (std::size_t e = 0; e < K.size(); ++e) entries.push_back({&K[e][row(t)], &V[e][row(t)], &dK[e][row(t)], &dV[e][row(t)], 0, 0});
      double top = -INFINITY, sum = 0, inner = 0;
      for (auto& e : entries) {
        for (int j = 0; j < h; ++j) e.p += qr[at + std::size_t(j)] * e.key[j] * scale;
        top = std::max(top, e.p);
      }
      for (auto& e : entries) sum += e.p = std::exp(e.p - top);
      for (auto& e : entries) {
        e.p /= sum;
        for (int j = 0; j < h; ++j) {
          out[at + std::size_t(j)] += e.p * e.value[j];
          e.dp += dout[at + std::size_t(j)] * e.value[j];
          e.dvalue[j] += e.p * dout[at + std::size_t(j)];
        }
        inner += e.p * e.dp;
      }
      for (auto& e : entries) for (int j = 0; j < h; ++j) {
        const double dz = e.p * (e.dp - inner) * scale;
        dq[at + std::size_t(j)] += dz * e.key[j];
        e.dkey[j] += dz * qr[at + std::size_t(j)];
      }
    }
    turn(dq, s.heads, -1);
    turn(dk, s.kv_heads, -1);
  }
};

// q, k, v and `slots` slots. Slots are pairs of arrays (N, kv), or with Stored::together columns of one array (N, 2 kv + 3)
// that starts at column 1 with the values and ends with the keys.
enum class Stored { apart, together };
template <class R> struct Slotted : Bench<R> {
  AttentionShape s;
  int slots;
  Stored stored;
  RopeTable<R> rope;
  Slotted(AttentionShape shape, int slots_, Stored stored_)
      : s(shape), slots(slots_), stored(stored_), rope(shape.seq + 3, shape.head_dim, theta) {
    const std::int64_t n = std::int64_t(s.batch) * s.seq;
    this->declare({n, s.width()});
    this->declare({n, s.kv_width()});
    this->declare({n, s.kv_width()});
    for (int e = 0; e < slots; ++e) for (int i = 0; i < (stored == Stored::apart ? 2 : 1); ++i)
      this->parameters.declare(fmt::format("slot {} {}", e, i), {n, stored == Stored::apart ? s.kv_width() : 2 * s.kv_width() + 3}, Init::truncated_normal(1));
    this->parameters.allocate(5);
  }
  std::vector<DepthSlotVar<Cpu, R>> list() {
    std::vector<DepthSlotVar<Cpu, R>> l;
    for (int e = 0; e < slots; ++e) {
      if (stored == Stored::apart) l.push_back({this->var(3 + 2 * e), this->var(4 + 2 * e)});
      else l.push_back({this->var(3 + e), this->var(3 + e), s.kv_width() + 3, 1});
    }
    return l;
  }
  VarOf<R> run() { return causal_attention(this->var(0), this->var(1), this->var(2), s, rope, list()); }
  // Keys (0) or values (1) of slot e, from numbers laid out as the parameters are.
  template <class V> List part(int e, int which, const V& of) {
    const int w = s.kv_width(), n = s.batch * s.seq;
    List x;
    const auto all = of(stored == Stored::apart ? 3 + 2 * e + which : 3 + e);
    const int columns = stored == Stored::apart ? w : 2 * w + 3, first = stored == Stored::apart ? 0 : which == 0 ? w + 3 : 1;
    for (int t = 0; t < n; ++t) for (int j = 0; j < w; ++j) x.push_back(double(all[std::size_t(t * columns + first + j)]));
    return x;
  }
};

template <class R> void agrees(const AttentionShape& s, int slots, Stored stored, double limit) {
  CAPTURE(s.batch, s.seq, s.heads, s.kv_heads, s.head_dim, slots, int(stored));
  Slotted<R> b(s, slots, stored);
  const auto wide = [&](int i) { const auto v = b.values(i); return List(v.begin(), v.end()); };
  Naive naive{s, wide(0), wide(1), wide(2), {}, {}, {}, {}, {}, {}, {}, {}};
  for (int e = 0; e < slots; ++e) {
    naive.K.push_back(b.part(e, 0, wide));
    naive.V.push_back(b.part(e, 1, wide));
  }
  const auto w = probe_weights<R>(naive.q.size());
  naive.run({w.begin(), w.end()});
  for (int pass = 1; pass <= 2; ++pass) {  // the second adds to the gradients of the first
    const auto out = b.run();
    CHECK(error_of(out.values(), naive.out) < limit);
    b.tape.backward(probe(out));
    const auto grads = [&](int i) { auto g = b.grads(i); for (auto& x : g) x /= R(pass); return g; };
    CHECK(error_of(grads(0), naive.dq) < 4 * limit);
    CHECK(error_of(grads(1), naive.dk) < 4 * limit);
    CHECK(error_of(grads(2), naive.dv) < 4 * limit);
    for (int e = 0; e < slots; ++e) {
      CHECK(error_of(b.part(e, 0, grads), naive.dK[std::size_t(e)]) < 4 * limit);
      CHECK(error_of(b.part(e, 1, grads), naive.dV[std::size_t(e)]) < 4 * limit);
    }
  }
}

}  // namespace

TEST_CASE("depth slots: equal plain attention, forward and backward", "[op]") {
  for (const auto stored : {Stored::apart, Stored::together}) {
    for (const int slots : {0, 1, 2, 17}) for (const auto& [heads, kv] : {std::pair{1, 1}, {4, 4}, {4, 2}, {6, 2}, {4, 1}})
      agrees<double>({2, 11, heads, kv, 4}, slots, stored, 1e-13);
    for (const int h : {2, 6, 10, 16, 20, 64}) agrees<double>({2, 7, 2, 1, h}, 3, stored, 1e-13);
    for (const int T : {1, 2, 47, 48, 49, 97}) agrees<double>({2, T, 2, 2, 6}, 5, stored, 1e-13);
  }
  agrees<double>({2, 600, 2, 1, 6}, 2, Stored::apart, 1e-12);  // more keys than one piece of 512, in both rows of the batch
}

TEST_CASE("depth slots: float agrees too", "[op]") {
  for (const int slots : {1, 2, 17}) agrees<float>({2, 49, 4, 2, 16}, slots, Stored::together, 4e-6);
  agrees<float>({1, 600, 2, 1, 10}, 4, Stored::apart, 1e-5);
}

TEST_CASE("depth slots: none is attention without them, bit for bit", "[op]") {
  Slotted<float> b({2, 50, 4, 2, 6}, 0, Stored::apart);
  const auto with = copy_of(b.run());
  CHECK(copy_of(causal_attention(b.var(0), b.var(1), b.var(2), b.s, b.rope)) == with);
}

TEST_CASE("depth slots: of a single token the softmax is over the token and its slots", "[op]") {
  Slotted<double> b({1, 1, 1, 1, 4}, 3, Stored::apart);
  List z{0, 0, 0, 0};
  for (int j = 0; j < 4; ++j) for (int e = 0; e < 4; ++e) z[std::size_t(e)] += b.at(0).value[j] * b.at(e == 0 ? 1 : 1 + 2 * e).value[j] / 2;
  double sum = 0;
  for (double& x : z) sum += x = std::exp(x);
  List needs(4, 0.0);
  for (int j = 0; j < 4; ++j) for (int e = 0; e < 4; ++e) needs[std::size_t(j)] += z[std::size_t(e)] / sum * b.at(e == 0 ? 2 : 2 + 2 * e).value[j];
  CHECK(error_of(b.run().values(), needs) < 1e-14);
}

TEST_CASE("depth slots: gradient agrees with finite differences", "[op]") {
  for (const auto stored : {Stored::apart, Stored::together}) {
    Slotted<double> b({2, 6, 4, 2, 6}, 3, stored);
    CHECK(b.check([&] { return probe(b.run()); }).worst < 1e-7);
  }
}

TEST_CASE("depth slots: one array as two slots and as the keys of attention gathers all its gradients", "[op]") {
  Bench<double> b({{6, 8}, {6, 4}, {6, 4}});
  const AttentionShape s{2, 3, 2, 1, 4};
  const RopeTable<double> rope(3, 4, theta);
  const auto check = b.check([&] {
    const auto q = b.var(0), k = b.var(1), v = b.var(2);
    return probe(causal_attention(q, k, v, s, rope, {{k, v}, {v, k}, {k, k}}));
  });
  CAPTURE(check.parameter);
  CHECK(check.worst < 1e-7);
}

TEST_CASE("depth slots: a token's slots change that token only", "[op]") {
  Slotted<float> b({2, 60, 4, 2, 6}, 2, Stored::apart);
  const auto before = copy_of(b.run());
  for (const int changed : {0, 31, 59, 60, 119}) for (const int which : {3, 4, 5, 6}) {
    auto values = b.at(which).values();
    const std::vector<float> kept(values.begin(), values.end());
    for (int j = 0; j < 12; ++j) values[std::size_t(changed * 12 + j)] += 1;
    const auto after = copy_of(b.run());
    for (int t = 0; t < 120; ++t) {
      const bool same = std::equal(before.begin() + t * 24, before.begin() + (t + 1) * 24, after.begin() + t * 24);
      if (same == (t == changed)) FAIL("token " << t << " after a change of token " << changed << " of array " << which);
    }
    std::copy(kept.begin(), kept.end(), values.begin());
  }
}

TEST_CASE("depth slots: keys are not rotated, queries are", "[op]") {
  // Two tokens with the same query, key, value and slots: the second sees its slots under another angle.
  Slotted<double> b({1, 9, 1, 1, 2}, 1, Stored::apart);
  for (int i = 0; i < 5; ++i) for (int t = 1; t < 9; ++t) for (int j = 0; j < 2; ++j) b.at(i).value[t * 2 + j] = b.at(i).value[j];
  for (int t = 0; t < 9; ++t) for (int j = 0; j < 2; ++j) b.at(1).value[t * 2 + j] = 0, b.at(2).value[t * 2 + j] = 0;  // the past: logit 0, value 0
  const auto out = copy_of(b.run());
  for (int t = 0; t < 9; ++t) {
    const double q0 = b.at(0).value[0], q1 = b.at(0).value[1];
    const double z = ((q0 * std::cos(t) - q1 * std::sin(t)) * b.at(3).value[0] + (q1 * std::cos(t) + q0 * std::sin(t)) * b.at(3).value[1]) / std::sqrt(2.0);
    const double p = std::exp(z) / (std::exp(z) + t + 1);
    for (int j = 0; j < 2; ++j) CHECK(out[std::size_t(t * 2 + j)] == Approx(p * b.at(4).value[j]).epsilon(1e-12));
  }
}

TEST_CASE("depth slots: scores of thousands stay finite, whichever side wins", "[op]") {
  for (const int loud : {1, 3}) {
    Slotted<float> b({1, 60, 1, 1, 4}, 2, Stored::apart);
    for (auto& x : b.at(0).values()) x *= 300;
    for (auto& x : b.at(loud).values()) x *= 300;
    const auto out = b.run();
    for (const float x : out.values()) REQUIRE(std::isfinite(x));
    b.tape.backward(probe(out));
    for (int i = 0; i < 7; ++i) for (const float g : b.grads(i)) REQUIRE(std::isfinite(g));
  }
}

TEST_CASE("depth slots: recomputed or on any number of threads, the same bits", "[op]") {
  std::vector<std::vector<float>> first;
  for (const int threads : {1, 2, 3}) for (const bool again : {false, true}) {
    Bench<float> b({{100, 24}, {100, 12}, {100, 12}, {100, 24}}, threads);
    const AttentionShape s{2, 50, 4, 2, 6};
    const RopeTable<float> rope(50, 6, theta);
    const auto f = [&b, &s, &rope] {
      const auto kv = b.var(3);
      return std::vector{causal_attention(b.var(0), b.var(1), b.var(2), s, rope, {{b.var(1), b.var(2)}, {kv, kv, 0, 12}})};
    };
    const auto out = again ? b.tape.recompute(f)[0] : f()[0];
    std::vector<std::vector<float>> all{copy_of(out)};
    b.tape.backward(probe(out));
    for (int i = 0; i < 4; ++i) all.push_back(b.grads(i));
    if (first.empty()) first = all;
    CHECK((all == first));
  }
}

TEST_CASE("depth slots: reject wrong shapes, saying which", "[op]") {
  Bench<double> b({{6, 8}, {6, 4}, {6, 4}, {5, 4}, {6, 8}});
  const RopeTable<double> rope(3, 4, theta);
  const auto run = [&](std::vector<DepthSlotVar<Cpu, double>> slots) {
    return message_of([&] { causal_attention(b.var(0), b.var(1), b.var(2), {2, 3, 2, 1, 4}, rope, slots); });
  };
  CHECK(run({{b.var(4), b.var(4), 4, 0}}) == "(nothing was thrown)");
  CHECK(run({{b.var(3), b.var(1)}}) ==
        "causal_attention: a depth slot has keys (5, 4) from column 0 and values (6, 4) from column 0, needs 6 rows and 4 columns");
  CHECK(run({{b.var(1), b.var(1)}, {b.var(4), b.var(4), 5, 0}}) ==
        "causal_attention: a depth slot has keys (6, 8) from column 5 and values (6, 8) from column 0, needs 6 rows and 4 columns");
  CHECK(run({{b.var(4), b.var(1), 0, 1}}) ==
        "causal_attention: a depth slot has keys (6, 8) from column 0 and values (6, 4) from column 1, needs 6 rows and 4 columns");
}

TEST_CASE("depth slots: reject columns before the first, saying which", "[op]") {
  Bench<double> b({{6, 8}, {6, 4}, {6, 4}, {6, 8}});
  const RopeTable<double> rope(3, 4, theta);
  CHECK(message_of([&] { b.tape.no_grad([&] { return std::vector{causal_attention(b.var(0), b.var(1), b.var(2), {2, 3, 2, 1, 4}, rope, {{b.var(3), b.var(3), -1, 0}})}; }); }) ==
        "causal_attention: a depth slot has keys (6, 8) from column -1 and values (6, 8) from column 0, needs 6 rows and 4 columns");
}
