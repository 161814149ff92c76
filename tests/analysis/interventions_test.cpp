// Blocks left out and exchanged: what the pass then holds, and that the model comes back bit by bit.
#include "depthbench/analysis/causal_score.hpp"
#include "depthbench/analysis/permutation_score.hpp"
#include "depthbench/residual/block_attn_res.hpp"
#include "depthbench/residual/keel.hpp"
#include "depthbench/residual/lns.hpp"
#include "depthbench/residual/mhc.hpp"
#include "depthbench/residual/moda.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "tests/analysis/model.hpp"
#include "tests/catch.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

template <template <class, class> class Design> void swap_restores(DesignOptions options = {}) {
  Analyzed<Design> a(4, options);
  const auto before = a.values();
  const auto logits = copy_of(a.model.logits(a.tape, a.sample.tokens, 3));
  for (const auto& [i, j] : {std::pair{0, 2}, std::pair{1, 2}, std::pair{2, 3}, std::pair{0, 3}}) {
    a.model.swap(i, j);
    CHECK(error_of(copy_of(a.model.logits(a.tape, a.sample.tokens, 3)), logits) > 1e-6);  // the order matters
    const auto there = a.values();
    CHECK(there != before);
    a.model.swap(i, j);
    CHECK(a.values() == before);
  }
  CHECK(copy_of(a.model.logits(a.tape, a.sample.tokens, 3)) == logits);
}

// A pass led to block s, without it, to the end.
template <class A> std::vector<double> logits_without(A& a, int s) {
  std::vector<double> out;
  without_trace(a.tape, [&] {
    auto pass = a.begin();
    while (pass.block() < s) pass.step();
    pass.skip();
    while (!pass.done()) pass.step();
    out = a.tape.host(a.model.head(pass.finish()));
  });
  a.tape.clear();
  return out;
}

}  // namespace

TEST_CASE("swap: twice restores parameters and logits, bit by bit") {
  swap_restores<PreLn>();
  swap_restores<Lns>();
  swap_restores<Keel>();
  swap_restores<Mhc>({{"n_streams", 2}, {"sinkhorn_iters", 3}});
  swap_restores<Moda>();
  swap_restores<BlockAttnRes>({{"block_size", 3}});
}

TEST_CASE("swap: a gain of LayerNorm Scaling keeps the factor of the block it came with") {
  Analyzed<Lns> a(3);
  for (auto& p : a.model_parameters())  // both blocks alike: what is left to exchange is the factor
    if (p.name.starts_with("blocks.2.")) {
      const auto& from = a.model.parameters()["blocks.0." + p.name.substr(9)];
      std::copy(from.values().begin(), from.values().end(), p.value);
    }
  const auto before = copy_of(a.model.logits(a.tape, a.sample.tokens, 3));
  a.model.swap(0, 2);
  CHECK(error_of(copy_of(a.model.logits(a.tape, a.sample.tokens, 3)), before) > 1e-3);
}

TEST_CASE("skip: the stream passes, and a model of the other blocks says the same") {
  Analyzed<PreLn> a(4), other(3);
  for (auto& p : other.model_parameters()) {  // block 1 of four left out = three blocks 0, 2, 3
    std::string from = p.name;
    if (p.name.starts_with("blocks.1.") || p.name.starts_with("blocks.2.")) from[7] = char(from[7] + 1);
    const auto& q = a.model.parameters()[from];
    std::copy(q.values().begin(), q.values().end(), p.value);
  }
  CHECK(logits_without(a, 1) == copy_of(other.model.logits(other.tape, a.sample.tokens, 3)));
}

TEST_CASE("skip: MoDA's slots stay in the softmax as zeros") {
  Analyzed<Moda> a(3);
  const auto skipped = logits_without(a, 0);
  // A block whose matrices are all zero writes nothing, and leaves keys and values that are zero.
  for (auto& p : a.model_parameters())
    if (p.name.starts_with("blocks.0.") && p.shape.rank() == 2) std::fill(p.value, p.value + p.numel(), 0.0);
  CHECK(error_of(copy_of(a.model.logits(a.tape, a.sample.tokens, 3)), skipped) < 1e-14);
}

TEST_CASE("causal score: one left-out block in a model where blocks do not see each other's work has no effect") {
  Analyzed<PreLn> a(3);
  for (auto& p : a.model_parameters())  // block 2 writes from a stream it scales to nothing: gains zero
    if (p.name.starts_with("blocks.2.") && p.name.ends_with("norm.weight")) std::fill(p.value, p.value + p.numel(), 0.0);
  const auto c = causal_score(a.model, a.tape, a.sample);
  CHECK(c(0, 2).mean() == 0);
  CHECK(c(1, 2).mean() == 0);
  CHECK(c(0, 1).mean() > 0.01);
  for (int s = 0; s < 3; ++s) for (int l = 0; l <= s; ++l) CHECK(!c(s, l).defined());
}

TEST_CASE("causal score: batches of windows change nothing but the interval's rounding") {
  Analyzed<BlockAttnRes> a(4, {{"block_size", 3}});
  AnalysisOptions one, all;
  one.rows = 1;
  all.rows = 3;
  const auto p = causal_score(a.model, a.tape, a.sample, one), q = causal_score(a.model, a.tape, a.sample, all);
  for (int s = 0; s < 4; ++s) for (int l = s + 1; l < 4; ++l) CHECK(p(s, l).mean() == Approx(q(s, l).mean()).epsilon(1e-12));
}

TEST_CASE("permutation score: equal blocks can be exchanged, and an exception on the way restores the model") {
  Analyzed<PreLn> a(3);
  for (auto& p : a.model_parameters())
    if (p.name.starts_with("blocks.2.")) {
      const auto& from = a.model.parameters()["blocks.0." + p.name.substr(9)];
      std::copy(from.values().begin(), from.values().end(), p.value);
    }
  const auto p = permutation_score(a.model, a.tape, a.sample);
  CHECK(p.score(0, 2) == 0);
  CHECK(p.score(0, 1) > 1e-4);
  const auto before = a.values();
  AnalysisOptions stop;
  stop.progress = [](std::int64_t, std::int64_t) { throw std::runtime_error("stop"); };
  CHECK_THROWS(permutation_score(a.model, a.tape, a.sample, stop));
  CHECK(a.values() == before);
}
