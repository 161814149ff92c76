// MoDA reads keys of attention, so its tests run whole models, against plain loops.
#include "depthbench/residual/moda.hpp"

#include "depthbench/residual/pre_ln.hpp"
#include "tests/catch.hpp"
#include "tests/residual/chain.hpp"
#include "tests/residual/moda_loops.hpp"

using namespace depthbench_test;
using V = VarOf<double>;
using Design = Moda<Cpu, double>;

TEST_CASE("moda: equals its formula", "[residual]") {
  for (const auto& c : {moda_config(1, 2, 2, 4), moda_config(2, 1, 1, 10), moda_config(4, 4, 2, 2), moda_config(3, 6, 2, 4)}) for (const int seq : {1, 7}) {
    Moded m(c, seq);
    CAPTURE(c.n_layers, c.n_heads, seq);
    CHECK(error_of(m.logits(), m.formula()) < 1e-12);
  }
}

TEST_CASE("moda: gradient agrees with finite differences", "[residual]") {
  for (const auto& c : {moda_config(1, 2, 2, 4), moda_config(3, 4, 2, 2), moda_config(2, 1, 1, 10)}) {
    Moded m(c, 5);
    const auto check = gradcheck<Cpu, double>(m.tape, m.model.parameters(), [&] { return m.loss(); }, 2);
    CAPTURE(check.parameter);
    CHECK(check.worst < 1e-7);
  }
}

TEST_CASE("moda: every parameter is alive at a random point", "[residual]") {
  Moded m(moda_config(3, 4, 2, 2), 9);
  m.gradients();
  for (const auto& p : m.model.parameters().list()) for (std::int64_t i = 0; i < p.numel(); ++i) {
    if (p.name == "embeddings.weight" && std::count(m.tokens.begin(), m.tokens.end(), i / 8) == 0) continue;  // not in the batch
    CAPTURE(p.name, i);
    CHECK(std::fabs(p.grads()[std::size_t(i)]) > 1e-12);
  }
}

TEST_CASE("moda: at initialisation the slots already take part in the softmax", "[residual]") {
  ModelConfig c = moda_config(2, 4, 2, 2);
  Moded a(c, 9), b(c, 9, std::make_unique<PreLn<Cpu, double>>());
  a.model.initialize(1);
  for (auto& p : b.model.parameters().list()) for (auto& q : a.model.parameters().list())
    if (Moded::plain_name(q.name) == p.name) std::copy(q.value, q.value + q.numel(), p.value);
  CHECK(a.at("blocks.0.feed_forward.kv_proj.weight").values()[0] != 0);
  CHECK(error_of(a.logits(), b.logits()) > 1e-6);
  const auto z = a.at("blocks.0.feed_forward.kv_proj.weight").values();
  double square = 0;
  for (const double w : z) {
    CHECK(std::fabs(w) <= 0.06);
    square += w * w / double(z.size());
  }
  CHECK(std::sqrt(square) == Approx(0.02).epsilon(0.3));
}

TEST_CASE("moda: reduces to Pre-LN when there is one block, bit for bit", "[residual]") {
  for (const int layers : {1, 2}) {
    Moded a(moda_config(layers, 4, 2, 2), 9), b(moda_config(layers, 4, 2, 2), 9, std::make_unique<PreLn<Cpu, double>>());
    CHECK((a.logits() == b.logits()) == (layers == 1));
    if (layers == 1) CHECK((a.gradients() == b.gradients()));
  }
}

TEST_CASE("moda: keeps its invariant, what comes later changes nothing before it", "[residual]") {
  Moded m(moda_config(3, 4, 2, 2), 9);
  const auto before = m.logits();
  m.tokens[5] = (m.tokens[5] + 1) % 13;  // of the first row of the batch
  const auto after = m.logits();
  for (int t = 0; t < 18; ++t)
    CHECK(std::equal(before.begin() + t * 13, before.begin() + (t + 1) * 13, after.begin() + t * 13) == (t < 5 || t >= 9));
}

TEST_CASE("moda: keys of earlier layers matter, by every one of their parts", "[residual]") {
  Moded m(moda_config(3, 4, 2, 2), 9);
  const auto before = m.logits();
  const int kv = m.model.config().kv_width(), d = m.model.config().d_model;
  for (const int block : {0, 1}) for (const int row : {0, kv - 1, kv, 2 * kv - 1}) {
    auto w = m.at(fmt::format("blocks.{}.feed_forward.kv_proj.weight", block)).values();
    const double kept = w[std::size_t(row * d)];
    w[std::size_t(row * d)] += 1;
    CHECK(error_of(m.logits(), before) > 1e-6);
    w[std::size_t(row * d)] = kept;
  }
  CHECK(m.logits() == before);
}

TEST_CASE("moda: kept or recomputed, the same bits", "[residual]") {
  Moded m(moda_config(4, 4, 2, 2), 60);
  CHECK((m.gradients(Activations::recompute) == m.gradients(Activations::keep)));
}

TEST_CASE("moda: both verbs at once are the two one after the other", "[residual]") {
  Bench<double> b;
  Design design;
  b.parameters.declare("x", {19, 8}, Init::truncated_normal(1));
  b.parameters.declare("y", {19, 8}, Init::truncated_normal(1));
  design.declare(b.parameters, {8, 4, 1e-2, 4});
  b.parameters.allocate(5);
  for (const int k : {0, 1}) {  // then an FFN, whose keys are left behind, or attention
    std::vector<Row> all[2];
    for (const bool at_once : {false, true}) {
      b.parameters.clear_grads();
      auto carry = design.open(b.var(0));
      V u;
      if (at_once) {
        u = design.advance(carry, b.var(1), k);
      } else {
        design.write(carry, b.var(1), k);
        u = design.read(carry, k + 1);
      }
      CHECK(carry.values.size() == (k == 0 ? 2 : 1));
      V sum = add(probe(u, 1), probe(carry.values[0], 2));
      if (k == 0) sum = add(sum, probe(carry.values[1], 3));
      all[at_once] = {copy_of(u), copy_of(carry.values[0]), copy_of(carry.values.back())};
      b.tape.backward(sum);
      b.parameters.settle_grads();
      for (const auto& p : b.parameters.list()) all[at_once].emplace_back(p.grads().begin(), p.grads().end());
    }
    CHECK(largest(all[1], all[0]) < 1e-13);
  }
}

TEST_CASE("moda: names, decay, head and initial scale", "[residual]") {
  Moded m(moda_config(3, 4, 2, 2), 2);
  auto& p = m.model.parameters();
  for (const int i : {0, 1, 2}) {
    const std::string kv = fmt::format("blocks.{}.feed_forward.kv_proj.weight", i);
    REQUIRE(bool(p.find(kv)) == (i < 2));
    if (i < 2) CHECK(p[kv].shape == Shape{8, 8});
    if (i < 2) CHECK(p[kv].decay == Decay::yes);
    CHECK(p.find(fmt::format("blocks.{}.attention.attention.w_q.weight", i)));
    CHECK(p.find(fmt::format("blocks.{}.feed_forward.feed_forward.w1.weight", i)));
    CHECK(p.find(fmt::format("blocks.{}.attention_norm.weight", i)));
  }
  CHECK(p.numel(Part::residual) == 2 * 64);
  CHECK(m.model.residual().head_eps({8, 6, 0.25, 4}) == 0.25);
  for (const auto w : {Weight::q, Weight::out, Weight::w2}) CHECK(m.model.residual().init_scale(w) == 1);
}

TEST_CASE("moda: rejects options, saying which", "[residual]") {
  CHECK_THROWS_AS(Design({{"n_streams", 2}}), config_error);
  CHECK_THROWS_WITH(Design({{"n_streams", 2}}), "residual design moda has no option n_streams");
}
