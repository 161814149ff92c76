// Path weights rebuild every sublayer's input; lens, streams and composed maps at their limits.
#include "depthbench/analysis/composed_map.hpp"
#include "depthbench/analysis/logit_lens.hpp"
#include "depthbench/analysis/window_loss.hpp"
#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/block_attn_res.hpp"
#include "depthbench/residual/hc.hpp"
#include "depthbench/residual/mhc.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "tests/analysis/model.hpp"
#include "tests/catch.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// The read-out of a model, from the outputs of its sublayers and their weights alone.
template <template <class, class> class Design> void rebuilds(DesignOptions options = {}) {
  Analyzed<Design> a(3, options);
  const int K = 6, N = 18, d = 8;
  without_trace(a.tape, [&] {
    std::vector<std::vector<double>> f;  // embedding, outputs
    std::vector<detail::StreamWeights> streams;
    auto pass = a.begin();
    const auto z = host_state(pass.state());
    f.emplace_back();
    for (int t = 0; t < N; ++t) f[0].insert(f[0].end(), z.row(std::size_t(t)), z.row(std::size_t(t)) + d);  // the first of equal streams
    for (int k = 0; k <= K; ++k) {
      const auto join = pass.join();
      REQUIRE(join);
      if (streams.empty() && join->streams > 0) streams.assign(std::size_t(N), detail::StreamWeights(join->streams));
      if (k == K) {
        std::vector<double> sum(std::size_t(N * d));
        for (int t = 0; t < N; ++t) for (int i = 0; i <= K; ++i) {
          double w = 0;
          if (join->streams > 0) w = streams[std::size_t(t)].read(&join->read[std::size_t(t * join->streams)], i);
          else for (const auto& s : join->sources) if (s.first <= i && i <= s.last) w += s.weight[std::size_t(t)];
          for (int c = 0; c < d; ++c) sum[std::size_t(t * d + c)] += w * f[std::size_t(i)][std::size_t(t * d + c)];
        }
        CHECK(error_of(sum, a.tape.host(pass.read_out())) < 1e-13);
        break;
      }
      const int n = join->streams;
      if (n > 0) for (int t = 0; t < N; ++t) streams[std::size_t(t)].write(&join->map[std::size_t(t * n * n)], &join->write[std::size_t(t * n)]);
      const auto y = pass.branch();
      f.push_back(a.tape.host(y));
      pass.write(y);
    }
  });
}

}  // namespace

TEST_CASE("path weights: outputs and their weights give the read-out back") {
  rebuilds<PreLn>();
  rebuilds<Hc>({{"n_streams", 3}});
  rebuilds<Mhc>({{"n_streams", 2}});
  rebuilds<AttnRes>();
  rebuilds<BlockAttnRes>({{"block_size", 4}});
}

TEST_CASE("path weights: mixtures of AttnRes add up to one, Pre-LN weighs everything alike") {
  Analyzed<AttnRes> a(3);
  const auto p = path_weights(a.model, a.tape, a.sample);
  REQUIRE(p);
  for (int k = 0; k <= 6; ++k) {
    double sum = 0;
    for (int i = 0; i <= k; ++i) sum += p->weights(i, k).mean();
    CHECK(sum == Approx(1).epsilon(1e-12));
  }
  CHECK(p->mixing.size() == 6);
  Analyzed<PreLn> b(2);
  const auto q = path_weights(b.model, b.tape, b.sample);
  REQUIRE(q);
  for (int k = 0; k <= 4; ++k) for (int i = 0; i <= 4; ++i) CHECK((i <= k ? q->weights(i, k).mean() == 1 : !q->weights(i, k).defined()));
  CHECK(!composed_map(b.model, b.tape, b.sample));
}

TEST_CASE("composed map: at its initial values HC keeps its streams apart, a mean of all makes them one") {
  Analyzed<Hc> a(2);
  a.model.initialize(1);
  const auto c = composed_map(a.model, a.tape, a.sample);
  REQUIRE(c);
  CHECK(c->rank_after(0, 3).mean() == Approx(4).epsilon(1e-12));
  CHECK(c->overlap.mean() < 1e-12);
  for (auto& p : a.model_parameters())
    if (p.name.ends_with("static_alpha")) std::fill(p.value, p.value + p.numel(), 0.25);
  const auto one = composed_map(a.model, a.tape, a.sample);
  CHECK(one->rank_after(0, 3).mean() == Approx(1).epsilon(1e-9));
  CHECK(one->overlap.mean() == Approx(1).epsilon(1e-12));
  CHECK(one->spectrum(0, 0).mean() == Approx(1).epsilon(1e-12));
}

TEST_CASE("composed map: what the maps of the sublayers, one after the other, make of each stream") {
  Analyzed<Hc> a(2, {{"n_streams", 3}});
  const auto c = composed_map(a.model, a.tape, a.sample);
  REQUIRE(c);
  const int n = 3, K = 4, tokens = 18;
  std::vector<double> product(std::size_t(n * n));
  without_trace(a.tape, [&] {
    std::vector<Join> joins;
    for (auto pass = a.begin(); int(joins.size()) < K; pass.write(pass.branch())) joins.push_back(*pass.join());
    for (int t = 0; t < tokens; ++t) for (int b = 0; b < n; ++b) {
      std::vector<double> x(std::size_t(n), 0.0);
      x[std::size_t(b)] = 1;
      for (const Join& join : joins) {
        std::vector<double> y(std::size_t(n), 0.0);
        for (int i = 0; i < n; ++i) for (int s = 0; s < n; ++s) y[std::size_t(i)] += join.map[std::size_t((t * n + i) * n + s)] * x[std::size_t(s)];
        x = y;
      }
      for (int i = 0; i < n; ++i) product[std::size_t(i * n + b)] += x[std::size_t(i)] / tokens;
    }
  });
  CHECK(error_of(c->product.means(), product) < 1e-12);
}

TEST_CASE("logit lens: at the end it is the model") {
  const auto check = []<template <class, class> class Design>(Analyzed<Design>&& a) {
    const auto lens = logit_lens(a.model, a.tape, a.sample);
    CHECK(lens.kl(0, 4).mean() == 0);
    CHECK(lens.overlap(0, 4).mean() == 1);
    CHECK(lens.early_exit(0, 4).mean() == Approx(window_loss(a.model, a.tape, a.sample, {}).mean()).epsilon(1e-12));
    for (int l = 0; l < 4; ++l) CHECK(lens.kl(0, l).mean() > 1e-3);
  };
  check(Analyzed<PreLn>());
  check(Analyzed<AttnRes>());
  check(Analyzed<Hc>());
}
