// The model in float32: the golden cases within rounding, threads, memory, causality, initial values.
#include "depthbench/model/transformer.hpp"

#include <cstring>

#include "tests/catch.hpp"
#include "tests/model/golden_result.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;
using V = VarOf<float>;
using Model = Transformer<Cpu, float>;

namespace {

const std::vector<std::string> designs = Designs<Cpu, float>().list();

std::unique_ptr<Model> make(Cpu& cpu, const std::string& design, std::uint64_t seed = 3) {
  ModelConfig c;
  c.vocab_size = 300;
  c.d_model = 32;
  c.n_layers = 3;
  c.n_heads = 4;
  c.n_kv_heads = 2;
  c.ffn_hidden = 80;
  auto model = std::make_unique<Model>(cpu, c, Designs<Cpu, float>().make(design));
  model->initialize(seed);
  return model;
}
std::vector<std::int32_t> some_tokens(std::size_t n, std::int32_t vocab) {
  std::vector<std::int32_t> t(n);
  for (std::size_t i = 0; i < n; ++i) t[i] = std::int32_t(Rng(4).below(i, std::uint64_t(vocab)));
  return t;
}
// Three optimizer steps: losses, norms, parameters.
std::vector<double> training(const std::string& design, int threads, Activations a) {
  Cpu cpu(threads);
  const auto model = make(cpu, design);
  Adamw<Cpu, float> adamw(model->parameters(), {});
  Tape<Cpu, float> tape(cpu);
  const auto tokens = some_tokens(2 * 100, 300), targets = some_tokens(2 * 100, 299);
  std::vector<double> all;
  for (int step = 0; step < 3; ++step) {
    const auto loss = model->loss(tape, tokens, targets, 2, 200, a);
    all.push_back(*loss.value());
    tape.backward(loss);
    all.push_back(adamw.step(1e-2));
  }
  for (const auto& p : model->parameters().list())
    all.insert(all.end(), p.values().begin(), p.values().end());
  return all;
}

}  // namespace

TEST_CASE("float32 and bf16: logits, loss, gradients and three steps of the golden cases within rounding", "[model]") {
  Cpu cpu(2);
  for (const auto& name : golden_cases()) {
    const Sensitivity sensitive = sensitivity(name);
    const auto share = [&](const Arithmetic& arithmetic) {
      GoldenCase<float> c(cpu, name);
      return worst_share(golden_result(c), golden_needs(c), allowed_rounding(sensitive, arithmetic));
    };
    cpu.set_products(Products::fp32);
    const Share fp32 = share(in_float(GoldenText(golden_folder() / name / "case.json").model));
    CAPTURE(name, fp32.value, fp32.what);
    CHECK(fp32.value < 1);
    cpu.set_products(Products::bf16);
    const Share bf16 = share(in_bf16());
    CAPTURE(bf16.value, bf16.what);
    CHECK(bf16.value < 1);
    CHECK(fp32.value > 1e-3);  // and no more room than that
    CHECK(bf16.value > 1e-3);
  }
}

TEST_CASE("transformer: training has the same bits on any number of threads, kept or recomputed", "[model]") {
  for (const auto& design : designs) {
    const auto one = training(design, 1, Activations::keep);
    CAPTURE(design);
    for (const int threads : {2, 3, 4}) CHECK(training(design, threads, Activations::keep) == one);
    CHECK(training(design, 2, Activations::recompute) == one);
    CHECK(one[4] < one[0]);  // and it learns
  }
}

TEST_CASE("transformer: a warm step takes nothing from the system and gives everything back", "[model]") {
  for (const auto& design : designs) for (const auto a : {Activations::keep, Activations::recompute}) {
    Cpu cpu(2);
    const auto model = make(cpu, design);
    Tape<Cpu, float> tape(cpu);
    const auto tokens = some_tokens(200, 300);
    const std::size_t before = cpu.memory().in_use();
    std::size_t reserved = 0;
    for (int step = 0; step < 4; ++step) {
      tape.backward(model->loss(tape, tokens, tokens, 2, 200, a));
      CHECK(cpu.memory().in_use() == before);
      if (step == 0) reserved = cpu.memory().reserved();
      CHECK(cpu.memory().reserved() == reserved);
    }
  }
}

TEST_CASE("transformer: recomputation holds less memory", "[model]") {
  for (const auto& design : designs) {
    Cpu cpu(1);
    const auto model = make(cpu, design);
    Tape<Cpu, float> tape(cpu);
    const auto tokens = some_tokens(400, 300);
    std::size_t peak[2];
    for (const auto a : {Activations::keep, Activations::recompute}) {
      tape.backward(model->loss(tape, tokens, tokens, 2, 400, a));
      cpu.memory().reset_peak();
      tape.backward(model->loss(tape, tokens, tokens, 2, 400, a));
      peak[int(a)] = cpu.memory().peak();
    }
    CAPTURE(design, peak[0], peak[1]);
    CHECK(double(peak[1]) < 0.85 * double(peak[0]));
  }
}

TEST_CASE("transformer: a later token changes nothing before it, nor in another row", "[model]") {
  for (const auto& design : designs) {
    Cpu cpu(2);
    const auto model = make(cpu, design);
    Tape<Cpu, float> tape(cpu);
    auto tokens = some_tokens(120, 299);
    const auto run = [&] {
      auto v = copy_of(model->logits(tape, tokens, 2));
      tape.clear();
      return v;
    };
    const auto before = run();
    tokens[50] = 299;
    const auto after = run();
    CAPTURE(design);
    CHECK(std::equal(before.begin(), before.begin() + 50 * 300, after.begin()));
    CHECK(std::equal(before.begin() + 60 * 300, before.end(), after.begin() + 60 * 300));
    for (int t = 50; t < 60; ++t)
      CHECK_FALSE(
          std::equal(before.begin() + t * 300, before.begin() + (t + 1) * 300, after.begin() + t * 300));
  }
}

TEST_CASE("transformer: initial values", "[model]") {
  Cpu cpu(1);
  const auto deviation = [](const Parameter<float>& p) {
    double square = 0;
    for (const float x : p.values()) square += double(x) * x;
    return std::sqrt(square / double(p.numel()));
  };
  const double cut = 0.98658;  // of a normal cut off at 3
  for (const auto& design : designs) {
    const auto model = make(cpu, design), same = make(cpu, design), other = make(cpu, design, 4);
    auto& p = model->parameters();
    const auto weight =
        [&](std::string_view name) -> Parameter<float>& {  // of block 2, wherever the design keeps it
      for (auto& q : p.list())
        if (q.name.starts_with("blocks.2.") && q.name.ends_with(name)) return q;
      fail<config_error>("no {}", name);
    };
    const auto scale = [&](Weight w) { return 0.02 * cut * model->residual().init_scale(w); };
    CAPTURE(design);
    CHECK(deviation(p["embeddings.weight"]) == Approx(0.02 * cut).epsilon(0.03));
    CHECK(deviation(p["lm_head.w_out.weight"]) == Approx(0.02 * cut).epsilon(0.03));
    CHECK(deviation(weight(".w_q.weight")) == Approx(scale(Weight::q)).epsilon(0.06));
    CHECK(deviation(weight(".w_out.weight")) == Approx(scale(Weight::out)).epsilon(0.06));
    CHECK(deviation(weight(".w1.weight")) == Approx(scale(Weight::w1)).epsilon(0.06));
    CHECK(deviation(weight(".w2.weight")) == Approx(scale(Weight::w2)).epsilon(0.06));
    if (design == "hc") CHECK(scale(Weight::out) == Approx(0.01 * cut));
    CHECK(p["lm_head.norm.weight"].values()[5] == 1);
    const auto values = [](Model& m) {
      const auto v = m.parameters()["embeddings.weight"].values();
      return std::vector<float>(v.begin(), v.end());
    };
    CHECK(values(*model) == values(*same));
    CHECK(values(*model) != values(*other));
  }
}

TEST_CASE("transformer: longer rows after shorter ones", "[model]") {
  Cpu cpu(1);
  const auto model = make(cpu, "pre_ln"), fresh = make(cpu, "pre_ln");
  Tape<Cpu, float> tape(cpu);
  const auto tokens = some_tokens(60, 300);
  model->logits(tape, std::span(tokens).first(10), 1);
  CHECK(copy_of(model->logits(tape, tokens, 1)) == copy_of(fresh->logits(tape, tokens, 1)));
}

TEST_CASE("transformer: rejects what it cannot run, saying why", "[model]") {
  Cpu cpu(1);
  const auto model = make(cpu, "pre_ln");
  Tape<Cpu, float> tape(cpu);
  const auto tokens = some_tokens(10, 300);
  CHECK_THROWS_AS(model->logits(tape, tokens, 3), shape_error);
  CHECK_THROWS_WITH(model->logits(tape, tokens, 3),
                    "transformer: 10 tokens do not make 3 rows of equal length");
  CHECK_THROWS_WITH(model->logits(tape, tokens, 0),
                    "transformer: 10 tokens do not make 0 rows of equal length");
  CHECK_THROWS_WITH(model->logits(tape, std::span<const std::int32_t>{}, 1),
                    "transformer: 0 tokens do not make 1 rows of equal length");
  ModelConfig bad;
  bad.n_heads = 3;
  CHECK_THROWS_AS(Model(cpu, bad, Designs<Cpu, float>().make("hc")), config_error);
  Model untouched(cpu, ModelConfig{}, Designs<Cpu, float>().make("pre_ln"));
  const std::vector<std::int32_t> small(10, 1);
  CHECK_THROWS_WITH(untouched.logits(tape, small, 1), Catch::Contains("has no value yet (call allocate())"));
}
