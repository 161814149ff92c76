// Sizes of states and gradients, block by block.
#include "tests/catch.hpp"
#include "tests/train/run.hpp"

using namespace depthbench;
using namespace depthbench_test;

TEST_CASE("layer statistics: the block that owns a parameter", "[train]") {
  CHECK(block_of("blocks.0.attention.w_q.weight") == 0);
  CHECK(block_of("blocks.12.x") == 12);
  for (const char* other : {"embeddings.weight", "lm_head.norm.weight", "blocks.weight", "blocks..x", "blocks.3", "blocks.x3.w", "blocks.123456789.w"})
    CHECK_FALSE(block_of(other));
}

TEST_CASE("layer statistics: states are the model's, gradients those of the step, and the step is the same", "[train]") {
  for (const auto activations : {Activations::keep, Activations::recompute}) {
    auto c = short_run(2);
    c.micro_batch = 3;  // of 4 windows: two passes
    c.activations = activations;
    Run<double> run(c), plain(c), again(c);
    LayerStatistics s;
    const auto r = run.trainer().step(&s);
    CHECK(r.loss == plain.trainer().step().loss);
    CHECK(run.values() == plain.values());

    std::vector<std::int32_t> tokens(48), targets(48);  // the first pass by hand
    again.sampler.batch(0, 3, tokens, targets);
    Tape<Cpu, double> tape(again.cpu);
    std::vector<double> rms;
    again.model.logits(tape, tokens, 3, [&](int, Var<Cpu, double> z) {
      double squares = 0;
      for (const double x : z.values()) squares += x * x;
      rms.push_back(std::sqrt(squares / double(z.numel())));
    });
    REQUIRE(s.state_rms.size() == rms.size());
    for (std::size_t l = 0; l < rms.size(); ++l) CHECK(s.state_rms[l] == Approx(rms[l]).epsilon(1e-13));

    tape.clear();
    again.sampler.batch(0, 3, tokens, targets);
    tape.backward(again.model.loss(tape, tokens, targets, 3, 60));
    tokens.resize(16);
    targets.resize(16);
    again.sampler.batch(3, 1, tokens, targets);
    tape.backward(again.model.loss(tape, tokens, targets, 1, 60));
    REQUIRE(s.grad_norm.size() == 2);
    double all = 0;
    for (int l = 0; l < 2; ++l) {
      double squares = 0;
      for (const auto& p : again.model.parameters().list())
        if (p.name.starts_with("blocks." + std::to_string(l) + ".")) for (const double g : p.grads()) squares += g * g;
      CHECK(s.grad_norm[std::size_t(l)] == Approx(std::sqrt(squares)).epsilon(1e-12));
      all += squares;
    }
    CHECK(std::sqrt(all) < r.grad_norm);  // embedding and head have the rest
  }
}
