// Attention over depth against plain loops.
#include "depthbench/op/depth_softmax.hpp"

#include "depthbench/op/add.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

constexpr double eps = 1e-5;

// Parameters: m sources (N, d), then the mixers' queries (1, d) and gains (d).
struct Depth {
  int n, d, m, mixers;
  Bench<double> b;
  Depth(int n_, int d_, int m_, int mixers_ = 1, int threads = 2)
      : n(n_), d(d_), m(m_), mixers(mixers_), b(threads) {
    for (int i = 0; i < m; ++i)
      b.parameters.declare(fmt::format("v{}", i), {n, d}, Init::truncated_normal(1 + 0.1 * i));
    for (int l = 0; l < mixers; ++l)
      b.parameters.declare(fmt::format("w{}", l), {1, d}, Init::truncated_normal(0.7));
    for (int l = 0; l < mixers; ++l)
      b.parameters.declare(fmt::format("g{}", l), {d}, Init::truncated_normal(1));
    b.parameters.allocate(4);
  }
  double* source(int s) { return b.at(s).value; }
  double* query(int l) { return b.at(m + l).value; }
  double* gain(int l) { return b.at(m + mixers + l).value; }

  DepthBank<Cpu, double> bank() {
    std::vector<VarOf<double>> w, g;
    for (int l = 0; l < mixers; ++l) w.push_back(b.var(m + l)), g.push_back(b.var(m + mixers + l));
    return {mixer_keys<Cpu, double>(w, g), eps};
  }
  // One mixer over all sources.
  VarOf<double> mix(double* probabilities = nullptr) {
    const auto bank_ = bank();
    std::vector<DepthBank<Cpu, double>::Source> sources;
    for (int s = 0; s < m; ++s) sources.push_back(bank_.publish(b.var(s), s, 0, 0));
    return bank_.read(sources, 0, probabilities);
  }
  // The same by plain loops; p (m, n).
  std::vector<double> naive(std::vector<double>* p = nullptr, int l = 0, int count = -1) {
    const int sources = count < 0 ? m : count;
    std::vector<double> o(std::size_t(n * d));
    if (p) p->assign(std::size_t(sources * n), 0);
    for (int t = 0; t < n; ++t) {
      std::vector<double> z;
      double sum = 0, top = -INFINITY;
      for (int s = 0; s < sources; ++s) {
        double square = 0, dot = 0;
        for (int c = 0; c < d; ++c) {
          const double x = source(s)[t * d + c];
          square += x * x;
          dot += query(l)[c] * gain(l)[c] * x;
        }
        z.push_back(dot / std::sqrt(square / d + eps));
        top = std::max(top, z.back());
      }
      for (double& a : z) sum += a = std::exp(a - top);
      for (int s = 0; s < sources; ++s) {
        if (p) (*p)[std::size_t(s * n + t)] = z[std::size_t(s)] / sum;
        for (int c = 0; c < d; ++c)
          o[std::size_t(t * d + c)] += z[std::size_t(s)] / sum * source(s)[t * d + c];
      }
    }
    return o;
  }
};

}  // namespace

TEST_CASE("depth softmax: equals its formula for any number of sources", "[op]") {
  for (const int m : {1, 2, 3, 4, 5, 8, 33, 40, 150}) for (const int d : {1, 6, 33}) {
    Depth x(18, d, m);
    std::vector<double> p, has(std::size_t(m * 18));
    const auto needs = x.naive(&p);
    CAPTURE(m, d);
    CHECK(error_of(x.mix(has.data()).values(), needs) < 1e-13);
    CHECK(error_of(has, p) < 1e-13);
  }
}

TEST_CASE("depth softmax: gradient agrees with finite differences", "[op]") {
  for (const auto& [n, d, m] : {std::array{1, 1, 2}, {3, 5, 1}, {5, 6, 3}, {17, 33, 5}, {20, 4, 40}}) {
    Depth x(n, d, m);
    CAPTURE(n, d, m);
    CHECK(x.b.check([&] { return probe(x.mix()); }, 1).worst < 1e-7);
  }
}

TEST_CASE("depth softmax: several mixers, sources that later ones add, one skipped, values used elsewhere",
          "[op]") {
  Depth x(17, 6, 4, 5);
  const auto run = [&](std::vector<VarOf<double>>* outs) {
    const auto bank = x.bank();
    std::vector<DepthBank<Cpu, double>::Source> sources{bank.publish(x.b.var(0), 0, 0, 4)};
    auto sum = probe(x.b.var(0), 50);
    for (const int l : {0, 1, 3, 4}) {  // nobody reads by mixer 2
      const auto o = bank.read(sources, l);
      if (outs) outs->push_back(o);
      sum = add(sum, probe(o, std::uint64_t(60 + l)));
      const int s = int(sources.size());
      if (s < 4)
        sources.push_back(
            bank.publish(s == 2 ? scale(o, 1.5) : x.b.var(s), s, 0, 4));  // one is made of another's output
    }
    return sum;
  };
  std::vector<VarOf<double>> outs;
  run(&outs);
  CHECK(error_of(outs[0].values(), x.naive(nullptr, 0, 1)) < 1e-13);
  CHECK(error_of(outs[1].values(), x.naive(nullptr, 1, 2)) < 1e-13);
  x.b.tape.clear();
  CHECK(x.b.check([&] { return run(nullptr); }).worst < 1e-7);
}

TEST_CASE("depth softmax: one source is passed on as it is, and its query has no gradient", "[op]") {
  Depth x(19, 7, 1);
  const auto o = x.mix();
  CHECK(copy_of(o) == x.b.values(0));
  x.b.tape.backward(probe(o));
  CHECK(error_of(x.b.grads(0), probe_weights(19 * 7)) < 1e-14);
  for (const double g : x.b.grads(1)) CHECK(std::fabs(g) < 1e-14);
}

TEST_CASE("depth softmax: a zero query takes the mean, and learns", "[op]") {
  Depth x(19, 7, 5);
  std::fill(x.query(0), x.query(0) + 7, 0.0);
  std::vector<double> p(5 * 19), mean(19 * 7);
  for (int s = 0; s < 5; ++s) for (int i = 0; i < 19 * 7; ++i) mean[std::size_t(i)] += x.source(s)[i] / 5;
  const auto o = x.mix(p.data());
  CHECK(error_of(o.values(), mean) < 1e-14);
  for (const double q : p) CHECK(q == 0.2);
  x.b.tape.backward(probe(o));
  for (const double g : x.b.grads(5)) CHECK(std::fabs(g) > 1e-6);
  for (const double g : x.b.grads(6)) CHECK(g == 0);  // the gain is multiplied by the zero query
}

TEST_CASE("depth softmax: weights are convex, so that every channel stays between its sources", "[op]") {
  Depth x(19, 7, 6);
  for (int c = 0; c < 7; ++c) x.query(0)[c] *= 4;
  std::vector<double> p(6 * 19);
  const auto o = x.mix(p.data());
  for (int t = 0; t < 19; ++t) {
    double sum = 0;
    for (int s = 0; s < 6; ++s) {
      CHECK(p[std::size_t(s * 19 + t)] >= 0);
      sum += p[std::size_t(s * 19 + t)];
    }
    CHECK(sum == Approx(1).epsilon(1e-14));
    for (int c = 0; c < 7; ++c) {
      double low = INFINITY, high = -INFINITY;
      for (int s = 0; s < 6; ++s)
        low = std::min(low, x.source(s)[t * 7 + c]), high = std::max(high, x.source(s)[t * 7 + c]);
      CHECK(o.value()[t * 7 + c] >= low - 1e-14);
      CHECK(o.value()[t * 7 + c] <= high + 1e-14);
    }
  }
}

TEST_CASE("depth softmax: scaling a source leaves its weight and scales its value", "[op]") {
  Depth x(19, 7, 3);
  for (int s = 0; s < 3; ++s) for (int i = 0; i < 19 * 7; ++i) x.source(s)[i] *= 1000;  // eps does not matter
  std::vector<double> p(3 * 19), q(3 * 19);
  const auto before = copy_of(x.mix(p.data()));
  const auto v = x.b.values(1);
  for (double* a = x.source(1); a < x.source(1) + 19 * 7; ++a) *a *= 8;
  const auto after = copy_of(x.mix(q.data()));
  CHECK(error_of(q, p) < 1e-10);
  for (int t = 0; t < 19; ++t) for (int c = 0; c < 7; ++c) {
    const auto i = std::size_t(t * 7 + c);
    CHECK(after[i] - before[i] == Approx(7 * p[std::size_t(19 + t)] * v[i]).margin(1e-4));
  }
}

TEST_CASE("depth softmax: scores far apart choose one source without overflow", "[op]") {
  Depth x(3, 4, 2);
  for (int c = 0; c < 4; ++c) {
    x.query(0)[c] = 1e4;
    x.gain(0)[c] = 1;
    for (int t = 0; t < 3; ++t) x.source(0)[t * 4 + c] = 1, x.source(1)[t * 4 + c] = -2;
  }
  const auto o = x.mix();
  CHECK(copy_of(o) == x.b.values(0));
  x.b.tape.backward(probe(o));
  for (const auto& p : x.b.parameters.list()) for (const double g : p.grads()) CHECK(std::isfinite(g));
}

TEST_CASE("depth softmax: rejects what does not exist, saying what", "[op]") {
  Depth x(4, 6, 2, 3);
  Bench<double> other({{4, 5}});
  const auto bank = x.bank();
  CHECK_THROWS_AS(bank.publish(x.b.tape.use(other.at(0)), 0, 0, 2), shape_error);
  CHECK_THROWS_WITH(bank.publish(x.b.tape.use(other.at(0)), 0, 0, 2),
                    "depth bank: the source has shape (4, 5), needs (N, 6)");
  CHECK_THROWS_WITH(bank.publish(x.b.var(0), 0, 1, 3), "depth bank: mixers 1 to 3 of 3 do not exist");
  CHECK_THROWS_WITH(bank.publish(x.b.var(0), 0, 2, 1), "depth bank: mixers 2 to 1 of 3 do not exist");
  const std::vector sources{bank.publish(x.b.var(0), 0, 1, 2)};
  CHECK_THROWS_WITH(bank.read(sources, 0),
                    "depth bank: source 0 was published for the mixers 1 to 2, not for 0");
  CHECK_THROWS_WITH(bank.read({}, 0), "depth bank: mixer 0 has no sources");
  Bench<double> longer({{5, 6}});
  CHECK_THROWS_WITH(bank.publish(x.b.tape.use(longer.at(0)), 1, 1, 2), "depth bank: the source has shape (5, 6), needs (4, 6)");
}

TEST_CASE("depth softmax: the same bits under bf16 products: scores over depth are float", "[op]") {
  const auto run = [](Products products) {
    Bench<float> b({{9, 32}, {9, 32}, {1, 32}, {32}});
    b.cpu.set_products(products);
    const DepthBank<Cpu, float> bank{mixer_keys<Cpu, float>({b.var(2)}, {b.var(3)}), eps};
    const std::vector sources{bank.publish(b.var(0), 0, 0, 0), bank.publish(b.var(1), 1, 0, 0)};
    const auto y = bank.read(sources, 0);
    const auto first = copy_of(y);
    auto v = random_numbers<float>(first.size(), 3);
    for (float& x : v) x = float(depthbench::bfloat16(x));  // a product in bf16 hands them on unchanged
    b.tape.backward(linear(reshape(y, {1, y.numel()}), b.tape.constant(v.data(), {1, y.numel()})));
    return std::tuple{first, b.grads(0), b.grads(1), b.grads(2), b.grads(3)};
  };
  CHECK(run(Products::fp32) == run(Products::bf16));
}
