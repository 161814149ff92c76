// The model in float64 against independent cases: tests/golden/README.md, limits of its section 6.
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/model/golden_case.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;
using V = VarOf<double>;

namespace {

// [sum p, sum p^2, sum_i p_i cos(0.37 i + 0.11)]
std::array<double, 3> digest(std::span<const double> p) {
  std::array<double, 3> s{};
  for (std::size_t i = 0; i < p.size(); ++i) {
    s[0] += p[i];
    s[1] += p[i] * p[i];
    s[2] += p[i] * std::cos(0.37 * double(i) + 0.11);
  }
  return s;
}

}  // namespace

TEST_CASE("golden: the cases are found", "[model]") {
  const auto names = golden_cases();
  for (const auto* design : {"pre_ln", "hc", "attn_res"})
    for (const auto* tag : {"tiny", "extra", "init", "medium"})
      CHECK(std::count(names.begin(), names.end(), fmt::format("{}_{}", design, tag)) == 1);
  CHECK(std::count(names.begin(), names.end(), "pre_ln_tiny_noclip") == 1);
}

TEST_CASE("golden: names, shapes, decay and number of parameters", "[model]") {
  Cpu cpu(1);
  for (const auto& name : golden_cases()) {
    GoldenCase<double> c(cpu, name);
    CAPTURE(name);
    std::set<std::string> has, needs, no_decay;
    for (const auto& p : c.model->parameters().list()) {
      has.insert("param." + p.name);
      if (p.decay == Decay::no) no_decay.insert(p.name);
      CHECK(c.file.at("param." + p.name).shape == extents_of(p.shape));
    }
    for (const auto& tensor : c.file.names()) if (tensor.starts_with("param.")) needs.insert(tensor);
    CHECK(has == needs);
    CHECK(no_decay == c.no_decay);
    CHECK(c.model->parameters().numel() == c.param_count);
  }
}

TEST_CASE("golden: logits, states, loss and gradients", "[model]") {
  Cpu cpu(2);
  Tape<Cpu, double> tape(cpu);
  for (const auto& name : golden_cases()) {
    GoldenCase<double> c(cpu, name);
    CAPTURE(name);
    int states = 0;
    const auto logits = c.model->logits(tape, c.tokens, c.batch, [&](int l, V z) {
      CAPTURE(l);
      CHECK(l == states++);
      CHECK(error_of(z.values(), c.needs(fmt::format("state.{}", l))) < (c.compact ? 2e-7 : 1e-10));
    });
    CHECK(states == c.model->config().n_layers + 1);
    CHECK(error_of(logits.values(), c.needs("logits")) < 1e-10);
    tape.clear();

    const auto loss = c.loss(tape);
    CHECK(std::fabs(*loss.value() - c.needs("loss")[0]) < 1e-10 * c.needs("loss")[0]);
    tape.backward(loss);
    for (const auto& p : c.model->parameters().list()) {
      CAPTURE(p.name);
      REQUIRE(p.has_grad);
      const auto needs = c.needs("grad." + p.name);
      if (c.near_zero.contains(p.name)) {
        for (std::size_t i = 0; i < needs.size(); ++i) CHECK(std::fabs(p.grads()[i] - needs[i]) < 1e-9);
      } else {
        CHECK(error_of(p.grads(), needs) < (c.compact ? 2e-7 : 1e-9));
      }
    }
  }
}

TEST_CASE("golden: three steps of AdamW", "[model]") {
  Cpu cpu(2);
  Tape<Cpu, double> tape(cpu);
  for (const auto& name : golden_cases()) {
    GoldenCase<double> c(cpu, name);
    Adamw<Cpu, double> adamw(c.model->parameters(), c.adamw);
    const double lr = c.lr;
    CAPTURE(name);
    for (int step = 0; step < 3; ++step) {
      const auto loss = c.loss(tape);
      CHECK(*loss.value() == Approx(c.losses.at(std::size_t(step))).epsilon(1e-10));
      tape.backward(loss);
      CHECK(adamw.step(lr) == Approx(c.grad_norms.at(std::size_t(step))).epsilon(1e-9));
    }
    for (const auto& p : c.model->parameters().list()) {
      CAPTURE(p.name);
      double worst = 0;
      if (c.file.find("after." + p.name)) {
        const auto needs = c.needs("after." + p.name);
        for (std::size_t i = 0; i < needs.size(); ++i)
          worst = std::max(worst, std::fabs(p.values()[i] - needs[i]));
        CHECK(worst < 1e-6 * lr);
      } else {
        const auto needs = c.needs("after_digest." + p.name);
        const auto has = digest(p.values());
        for (std::size_t i = 0; i < 3; ++i) worst = std::max(worst, std::fabs(has[i] - needs[i]));
        CHECK(worst < 1e-6 * lr * double(p.numel()));
      }
    }
  }
}

TEST_CASE("golden: recomputed activations give the same bits, and logits without recording are the same",
          "[model]") {
  Cpu cpu(2);
  Tape<Cpu, double> tape(cpu);
  for (const auto& name : golden_cases()) {
    if (!name.ends_with("medium") && !name.ends_with("extra")) continue;
    GoldenCase<double> c(cpu, name);
    CAPTURE(name);
    std::vector<std::vector<double>> grads[2];
    double loss[2];
    for (const auto a : {Activations::keep, Activations::recompute}) {
      c.model->parameters().clear_grads();
      const auto l = c.loss(tape, a);
      loss[int(a)] = *l.value();
      tape.backward(l);
      for (const auto& p : c.model->parameters().list())
        grads[int(a)].emplace_back(p.grads().begin(), p.grads().end());
    }
    CHECK(loss[0] == loss[1]);
    CHECK(grads[0] == grads[1]);
    const auto recorded = copy_of(c.model->logits(tape, c.tokens, c.batch));
    tape.clear();
    const auto silent =
        tape.no_grad([&] { return std::vector<V>{c.model->logits(tape, c.tokens, c.batch)}; });
    CHECK(copy_of(silent[0]) == recorded);
    tape.clear();
  }
}

TEST_CASE("golden: hc at its initial values is Pre-LN", "[model]") {
  Cpu cpu(1);
  Tape<Cpu, double> tape(cpu);
  GoldenCase<double> hc(cpu, "hc_init"), pre_ln(cpu, "pre_ln_init");
  std::vector<std::vector<double>> states;
  const auto needs = copy_of(pre_ln.model->logits(tape, pre_ln.tokens, pre_ln.batch,
                                                  [&](int, V z) { states.push_back(copy_of(z)); }));
  int wrong = 0;
  const auto has = copy_of(hc.model->logits(tape, hc.tokens, hc.batch, [&](int l, V z) {
    for (int t = 0; t < z.rows(); ++t)
      for (int i = 0; i < 4 * 16; ++i)
        wrong += z.value()[t * 64 + i] != states[std::size_t(l)][std::size_t(t * 16 + i % 16)];
  }));
  CHECK(wrong == 0);
  CHECK(error_of(has, needs) < 1e-6);   // the head's eps sees a sum of four copies
  CHECK(error_of(has, needs) > 1e-9);
}

TEST_CASE("golden: parameter counts of the published shapes, without any memory", "[model]") {
  Cpu cpu(1);
  const Designs<Cpu, double> designs;
  std::ifstream counts(golden_folder() / "expected_counts.json");
  const auto shapes = nlohmann::json::parse(counts)["shapes"];
  CHECK(shapes.size() == 32);
  for (const auto& [name, shape] : shapes.items()) {
    ModelConfig c;
    c.vocab_size = shape["vocab_size"];
    c.d_model = shape["d_model"];
    c.n_layers = shape["n_layers"];
    c.n_heads = shape["n_heads"];
    c.n_kv_heads = shape["n_kv_heads"];
    c.ffn_hidden = shape["ffn_hidden"];
    CAPTURE(name);
    CHECK(c.head_dim() == shape["head_dim"].get<int>());
    for (const auto& design : designs.list()) {
      Transformer<Cpu, double> model(cpu, c, designs.make(design));
      const auto& p = model.parameters();
      CAPTURE(design);
      CHECK(p.numel() == shape["totals"][design].get<std::int64_t>());
      if (design == "pre_ln")
        CHECK(p.numel() - p.numel(Part::embedding) - p.numel(Part::head) ==
              shape["backbone_pre_ln"].get<std::int64_t>() + c.d_model);
    }
  }
  CHECK(cpu.memory().reserved() == 0);
}
