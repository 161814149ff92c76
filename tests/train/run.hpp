// A small run on made-up tokens, whose next token mostly follows from the last.
#pragma once
#include <optional>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "depthbench/train/trainer.hpp"

namespace depthbench_test {

inline std::vector<std::int32_t> made_up_text(std::size_t n) {
  std::vector<std::int32_t> t{1};
  const depthbench::Rng rng(8);
  while (t.size() < n)
    t.push_back(rng.below(t.size(), 8) == 0 ? std::int32_t(rng.below(t.size() + n, 30))
                                            : (t.back() * 7 + 3) % 30);
  return t;
}
inline depthbench::ModelConfig small_model() {
  depthbench::ModelConfig c;
  c.vocab_size = 30;
  c.d_model = 16;
  c.n_layers = 2;
  c.n_heads = 2;
  c.n_kv_heads = 1;
  c.ffn_hidden = 24;
  return c;
}
inline depthbench::TrainConfig short_run(std::int64_t steps = 12) {
  depthbench::TrainConfig c;
  c.seq_len = 16;
  c.batch_tokens = 64;
  c.micro_batch = 4;
  c.steps = steps;
  c.lr = 1e-2;
  return c;
}

template <class R, template <class, class> class Design = depthbench::PreLn> struct Run {
  using Model = depthbench::Transformer<depthbench::Cpu, R>;
  depthbench::Cpu cpu;
  Model model;
  depthbench::Corpus corpus = depthbench::corpus_from_tokens(made_up_text(2000));
  depthbench::WindowSampler sampler;
  std::optional<depthbench::Trainer<depthbench::Cpu, R>> made;

  explicit Run(const depthbench::TrainConfig& c, int threads = 2,
               const depthbench::ModelConfig& m = small_model())
      : cpu(threads),
        model(cpu, m, std::make_unique<Design<depthbench::Cpu, R>>()),
        sampler(corpus, std::vector{depthbench::TokenRange{0, 2000}}, c.seq_len, c.data_seed) {
    model.initialize(c.seed);
    made.emplace(model, sampler, c);
  }
  depthbench::Trainer<depthbench::Cpu, R>& trainer() { return *made; }
  std::vector<double> values() {
    std::vector<double> all;
    for (const auto& p : model.parameters().list())
      all.insert(all.end(), p.values().begin(), p.values().end());
    return all;
  }
};

}  // namespace depthbench_test
