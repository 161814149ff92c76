// Predicted memory against what the Cpu took: the same code on the same free lists, so equal to the byte.
#include "depthbench/train/trainer.hpp"
#include "tests/account/designs.hpp"
#include "tests/catch.hpp"

namespace depthbench {
template void add_built_in<Cpu, float>(Designs<Cpu, float>&);
template void add_built_in<ShapeOnly, float>(Designs<ShapeOnly, float>&);
}  // namespace depthbench

using namespace depthbench;

namespace {

struct Measured {
  std::size_t saved, peak;
};

// A training step on the Cpu, as Trainer does it.
Measured measured(const std::string& design, const ModelConfig& c, const CountOptions& o, Activations activations, int steps = 1) {
  Cpu cpu(o.threads);
  cpu.set_products(o.bf16_products ? Products::bf16 : Products::fp32);
  Transformer<Cpu, float> model(cpu, c, Designs<Cpu, float>().make(design));
  model.initialize(0);
  Adamw<Cpu, float> adamw(model.parameters(), {});
  Tape<Cpu, float> tape(cpu);
  std::vector<std::int32_t> tokens(std::size_t(o.batch * o.seq_len));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 7 % std::size_t(c.vocab_size));
  Measured m{};
  for (int i = 0; i < steps; ++i) {
    const std::size_t before = cpu.memory().in_use();
    const auto loss = model.loss(tape, tokens, tokens, int(o.batch), double(tokens.size()), activations);
    m.saved = cpu.memory().in_use() - before;
    tape.backward(loss);
    adamw.step(1e-3);
  }
  m.peak = cpu.memory().peak();
  return m;
}

constexpr ModelConfig tiny{.vocab_size = 97, .d_model = 32, .n_layers = 3, .n_heads = 4, .n_kv_heads = 2, .ffn_hidden = 80};

}  // namespace

TEST_CASE("account: peak memory of a step equals the Cpu's, for every design") {
  for (const auto& design : Designs<ShapeOnly, float>().list())
    for (const int threads : {1, 2}) {
      const CountOptions o{.seq_len = 40, .batch = 2, .threads = threads};
      const Cost cost = depthbench_test::counted(design, tiny, o);
      const Measured kept = measured(design, tiny, o, Activations::keep), again = measured(design, tiny, o, Activations::recompute);
      INFO(design << ", " << threads << " threads");
      CHECK(std::size_t(cost.memory.peak) == kept.peak);
      CHECK(std::size_t(cost.memory.saved) == kept.saved);
      CHECK(std::size_t(cost.memory.peak_recompute) == again.peak);
      CHECK(std::size_t(cost.memory.saved_recompute) == again.saved);
    }
}

TEST_CASE("account: a second step needs no more than the first") {
  const CountOptions o{.seq_len = 24, .batch = 1};
  for (const char* design : {"hc", "attn_res"})
    CHECK(measured(design, tiny, o, Activations::keep, 3).peak == std::size_t(depthbench_test::counted(design, tiny, o).memory.peak));
}

TEST_CASE("account: bfloat16 products take memory for rounded inputs, and no FLOPs more") {
  const CountOptions o{.seq_len = 64, .batch = 2, .bf16_products = true};
  const Cost cost = depthbench_test::counted("pre_ln", tiny, o),
             plain = depthbench_test::counted("pre_ln", tiny, {.seq_len = 64, .batch = 2});
  CHECK(std::size_t(cost.memory.peak) == measured("pre_ln", tiny, o, Activations::keep).peak);
  CHECK(cost.flops.forward.total() == plain.flops.forward.total());
}

TEST_CASE("account: slabs of parameters, gradients and moments") {
  const Cost cost = depthbench_test::counted("pre_ln", tiny);
  const double bytes = 4 * double(cost.parameters.total());  // a parameter starts on a line of 64 bytes
  CHECK(cost.memory.parameters >= bytes);
  CHECK(cost.memory.parameters <= bytes + 64 * 40);
  CHECK(cost.memory.gradients == cost.memory.parameters);
  CHECK(cost.memory.moments - 2 * cost.memory.parameters == 256);  // a line for the partial sums of the norm, one for the schedule, with stagger
}

TEST_CASE("account: FLOPs and bytes are those that the ops of a Cpu report") {
  for (const char* design : {"mhc", "moda", "attn_res", "hc"}) {
    Cpu cpu(1);
    ShapeOnly nothing(1);
    Transformer<Cpu, float> model(cpu, tiny, Designs<Cpu, float>().make(design));
    Transformer<ShapeOnly, float> shape(nothing, tiny, Designs<ShapeOnly, float>().make(design));
    const std::vector<std::int32_t> tokens(50, 1);
    const auto run = [&](auto& device, auto& m, auto& tape) {
      m.initialize(0);
      device.profile().start();
      tape.backward(m.loss(tape, tokens, tokens, 2, 50.0));
    };
    Tape<Cpu, float> tape(cpu);
    Tape<ShapeOnly, float> tape_of_nothing(nothing);
    run(cpu, model, tape);
    run(nothing, shape, tape_of_nothing);
    for (int s = 0; s < section_count; ++s) {
      const Tally has = cpu.profile()[Section(s)], needs = nothing.profile()[Section(s)];
      INFO(design << ": " << section_names[std::size_t(s)]);
      CHECK(has.bytes == Approx(needs.bytes));
      CHECK(has.calls == needs.calls);
      if (Section(s) != Section::rows) CHECK(has.flops == Approx(needs.flops));  // a Cpu does not count inside row programs
    }
  }
}
