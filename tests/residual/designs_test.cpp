// The designs by name, options, and a user's own design, trained like the built-in ones.
#include "depthbench/residual/designs.hpp"

#include <algorithm>

#include "depthbench/model/transformer.hpp"
#include "depthbench/train/adamw.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// x_{k+1} = x_k + a_k S_k(x_k), a_k one number a sublayer, from zero        Bachlechner et al. 2020 (ReZero)
template <class Device, class R> class ReZero final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;
  explicit ReZero(const DesignOptions& options) { options.expect_only("rezero", {}); }
  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    for (int k = 0; k < shape.sublayers; ++k)
      weight_.push_back(
          &p.declare(sublayer_name(k) + "_weight", {1, 1}, Init::constant(0), Decay::no, Part::residual));
  }
  State open(Variable x) override { return {{x}, nullptr}; }
  Variable read(State& carry, int) override { return carry.values[0]; }
  void write(State& carry, Variable y, int k) override {
    const auto flat = reshape(y, {y.numel(), 1});
    const auto scaled = linear(flat, y.tape->use(*weight_[std::size_t(k)]));
    carry.values[0] = add(carry.values[0], reshape(scaled, y.shape()));
  }
  Variable close(State& carry) override { return carry.values[0]; }
  Variable state(State& carry, int) override { return carry.values[0]; }

 private:
  std::vector<Parameter<R>*> weight_;
};

ModelConfig small() {
  ModelConfig c;
  c.vocab_size = 20;
  c.d_model = 16;
  c.n_layers = 2;
  c.n_heads = 2;
  c.n_kv_heads = 1;
  c.ffn_hidden = 32;
  return c;
}

}  // namespace

TEST_CASE("designs: by name, in order, each asked for with its options", "[residual]") {
  Designs<Cpu, float> designs;
  std::string joined;
  for (const auto& name : designs.list()) joined += (joined.empty() ? "" : ", ") + name;
  CHECK(designs.names() == joined);
  CHECK(std::ranges::is_sorted(designs.list()));
  for (const auto* name : {"attn_res", "hc", "pre_ln"}) CHECK(designs.has(name));
  CHECK_FALSE(designs.has("HC"));
  CHECK(designs.make("hc", {{"n_streams", 2}})->init_scale(Weight::out) == Approx(std::sqrt(0.5)));
  CHECK_THROWS_AS(designs.make("hyper"), config_error);
  CHECK_THROWS_WITH(designs.make("hyper"),
                    "residual designs: there is none named hyper; there are " + joined);
  CHECK_THROWS_WITH(designs.add("hc", {}), "residual designs: there is already one named hc");
  CHECK_THROWS_WITH(designs.make("pre_ln", {{"n_streams", 2}}),
                    "residual design pre_ln has no option n_streams");
}

TEST_CASE("designs: options are whole numbers within their range", "[residual]") {
  DesignOptions o{{"a", 3}};
  CHECK(o.integer("a", 1, 0, 5) == 3);
  CHECK(o.integer("b", 1, 0, 5) == 1);
  o.set("a", 7);
  CHECK(o.all().at("a") == 7);
  CHECK_THROWS_WITH(o.integer("a", 1, 0, 5), "residual design: a is 7, needs a whole number from 0 to 5");
  o.set("a", NAN);
  CHECK_THROWS_AS(o.integer("a", 1, 0, 5), config_error);
  CHECK_NOTHROW(o.expect_only("x", {"a", "b"}));
  CHECK_THROWS_WITH(o.expect_only("x", {"b"}), "residual design x has no option a");
  CHECK(sublayer_name(0) == "blocks.0.attention");
  CHECK(sublayer_name(7) == "blocks.3.feed_forward");
}

TEST_CASE("designs: a user's own one trains, kept or recomputed, and its parameters are alive",
          "[residual]") {
  Designs<Cpu, float> designs;
  designs.add_type<ReZero>("rezero");
  CHECK(designs.has("rezero"));
  std::vector<std::int32_t> tokens, targets;
  for (int i = 0; i < 64; ++i) tokens.push_back(i * i % 20), targets.push_back((i + 1) * (i + 1) % 20);
  double last[2];
  for (const auto a : {Activations::keep, Activations::recompute}) {
    Cpu cpu(2);
    Transformer<Cpu, float> model(cpu, small(), designs.make("rezero"));
    model.initialize(1);
    Adamw<Cpu, float> adamw(model.parameters(), {});
    Tape<Cpu, float> tape(cpu);
    double first = 0;
    for (int step = 0; step < 40; ++step) {
      const auto loss = model.loss(tape, tokens, targets, 2, 64, a);
      last[int(a)] = *loss.value();
      if (step == 0) first = last[int(a)];
      tape.backward(loss);
      if (step == 0)
        for (int k = 0; k < 4; ++k) CHECK(model.parameters()[sublayer_name(k) + "_weight"].grads()[0] != 0);
      adamw.step(1e-2);
    }
    CHECK(first == Approx(std::log(20)).epsilon(0.05));
    CHECK(last[int(a)] < 0.7 * first);
    for (int k = 0; k < 4; ++k)
      CHECK(std::fabs(model.parameters()[sublayer_name(k) + "_weight"].values()[0]) > 0.01);
  }
  CHECK(last[0] == last[1]);
}

TEST_CASE("designs: a user's own one has right gradients in the whole model", "[residual]") {
  Cpu cpu(1);
  Transformer<Cpu, double> model(cpu, small(), std::make_unique<ReZero<Cpu, double>>(DesignOptions{}));
  model.initialize(1);
  for (auto& p : model.parameters().list()) for (std::int64_t i = 0; i < p.numel(); ++i)
    p.value[i] = p.part == Part::residual ? 0.5 : 10 * p.value[i];
  Tape<Cpu, double> tape(cpu);
  const std::vector<std::int32_t> tokens{1, 5, 2, 19, 0, 7}, targets{5, 2, 19, 0, ignored_target, 3};
  const auto check = gradcheck<Cpu, double>(
      tape, model.parameters(), [&] { return model.loss(tape, tokens, targets, 2, 5); }, 1);
  CAPTURE(check.parameter);
  CHECK(check.worst < 1e-6);
}
