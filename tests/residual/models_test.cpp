// Whole models of every design: odd shapes, life of every parameter, Pre-LN at the start.
#include "tests/residual/models.hpp"

#include "tests/catch.hpp"

using namespace depthbench;
using namespace depthbench_test;

template void depthbench::add_built_in<Cpu, double>(Designs<Cpu, double>&);

TEST_CASE("every design: gradient of the whole model agrees with finite differences, at odd widths", "[residual]") {
  for (const auto& named : all_designs) for (const auto& c : {model_config(3, 1, 1, 10), model_config(2, 3, 1, 2), model_config(1, 3, 3, 2)}) {
    Whole<double> m(named, c);
    m.randomize();
    const auto check = gradcheck<Cpu, double>(m.tape, m.model.parameters(), [&] { return m.loss(); }, 2);
    CAPTURE(text_of(named), c.d_model, check.parameter);
    CHECK(check.worst < 2e-7);
  }
}

// Which have no gradient, or next to none, is structure: see the pages of the designs.
TEST_CASE("every design: every parameter is alive at a random point", "[residual]") {
  for (const auto& named : all_designs) {
    Whole<double> m(named, model_config(3, 4, 2, 2), 15);
    m.randomize();
    m.gradients();
    std::string dead;
    for (const auto& p : m.model.parameters().list()) {
      double norm = 0;
      std::int64_t zero = 0;
      for (std::int64_t i = 0; i < p.numel(); ++i) {
        const double g = p.grads()[std::size_t(i)];
        norm += g * g;
        const bool absent = p.name == "embeddings.weight" && std::count(m.tokens.begin(), m.tokens.end(), i / 8) == 0;
        zero += g == 0 && !absent;
      }
      CAPTURE(text_of(named), p.name);
      CHECK(zero == 0);
      if (std::sqrt(norm) < 1e-8) dead += p.name + " ";
    }
    CAPTURE(text_of(named));
    // mHC: the mean read-out leaves nothing of the last H_res; equal streams leave nothing of the first but the error of the
    // row sums, which after 5 iterations is still there
    const bool converged = named.options.all().count("sinkhorn_iters") == 0;
    const std::string first = "blocks.0.attention_hyper_connection.alpha_res ", last = "blocks.2.feed_forward_hyper_connection.alpha_res ";
    CHECK(dead == (named.design != "mhc" ? "" : converged ? first + last : last));
  }
}

TEST_CASE("every design: the initial values that make it Pre-LN do, and the others do not", "[residual]") {
  // Largest difference of logits from Pre-LN with the same weights, relative: less than `most`, more than `least`.
  struct Expected { Named named; int layers; double least, most; };
  const std::vector<Expected> expected{
      {{"hc", {}}, 4, 1e-12, 1e-4},                                  // the last norm sees a sum of n copies, so eps / n^2
      {{"hc", {{"n_streams", 1}}}, 4, -1, 1e-13},
      {{"mhc", {}}, 4, 1e-9, 1e-3},                                  // H_pre and H_res start near one-hot, not at it
      {{"attn_res", {}}, 4, 1e-9, 0.1},                              // eps of other norms: 1e-5 times the number of sources squared
      {{"block_attn_res", {{"block_size", 2}}}, 4, 1e-9, 0.1},
      {{"lns", {}}, 1, -1, 0x1p-60},
      {{"moda", {}}, 1, -1, 0x1p-60},
      {{"lns", {}}, 4, 1e-2, 1e2},
      {{"moda", {}}, 4, 1e-2, 1e2},
      {{"sandwich_ln", {}}, 4, 1e-2, 1e2},
      {{"deepnorm", {}}, 4, 1e-2, 1e2},
      {{"keel", {}}, 4, 1e-2, 1e2}};
  for (const auto& e : expected) {
    Whole<double> yardstick({"pre_ln", {}}, model_config(e.layers, 4, 2, 4)), m(e.named, model_config(e.layers, 4, 2, 4));
    // The common matrices, the same and of a size at which branches matter; what is the design's own stays as it starts.
    for (auto* w : {&yardstick, &m}) for (auto& p : w->model.parameters().list()) {
      std::string name = p.name;
      for (const std::string twice : {"attention.attention.", "feed_forward.feed_forward."})
        if (const auto at = name.find(twice); at != std::string::npos) name.erase(at, twice.size() / 2);
      if (p.part == Part::norm || (p.part == Part::residual && !name.ends_with("kv_proj.weight"))) continue;
      std::uint64_t seed = 0;
      for (const char letter : name) seed = 31 * seed + std::uint64_t(letter);
      const auto z = random_numbers(std::size_t(p.numel()), seed);
      for (std::size_t i = 0; i < z.size(); ++i) p.value[i] = z[i] * (p.part == Part::embedding ? 1 : 0.4);
    }
    const double difference = error_of(m.logits(), yardstick.logits());
    CAPTURE(text_of(e.named), e.layers);
    CHECK(difference > e.least);
    CHECK(difference < e.most);
  }
}
