// Whole models of every design, small and of odd widths, for the tests that go through all of them.
// models_test.cpp holds the designs in double for all files that include this: compiling them takes half a minute.
#pragma once
#include <algorithm>

#include "depthbench/model/transformer.hpp"
#include "depthbench/residual/designs.hpp"
#include "tests/tape/fixture.hpp"

namespace depthbench {
extern template void add_built_in<Cpu, double>(Designs<Cpu, double>&);
}

namespace depthbench_test {


struct Named {
  std::string design;
  depthbench::DesignOptions options;
};
// Every design; those with options also away from their defaults.
inline const std::vector<Named> all_designs{{"pre_ln", {}}, {"sandwich_ln", {}}, {"lns", {}}, {"deepnorm", {}}, {"keel", {}}, {"hc", {}},
                                     {"hc", {{"n_streams", 3}}}, {"mhc", {{"sinkhorn_iters", 5}}}, {"mhc", {{"n_streams", 3}}}, {"attn_res", {}},
                                     {"block_attn_res", {{"block_size", 2}}}, {"block_attn_res", {{"block_size", 3}}}, {"moda", {}}};

inline depthbench::ModelConfig model_config(int layers, int heads, int kv_heads, int head) {
  depthbench::ModelConfig c;
  c.vocab_size = 11;
  c.d_model = heads * head;
  c.n_layers = layers;
  c.n_heads = heads;
  c.n_kv_heads = kv_heads;
  c.ffn_hidden = 7;
  c.rope_theta = 100;
  c.norm_eps = 1e-3;
  return c;
}

template <class R> struct Whole {
  depthbench::Cpu cpu{1};
  depthbench::Tape<depthbench::Cpu, R> tape{cpu};
  depthbench::Transformer<depthbench::Cpu, R> model;
  int batch = 2;
  std::vector<std::int32_t> tokens, targets;

  Whole(const Named& named, const depthbench::ModelConfig& c, int seq = 6) : model(cpu, c, depthbench::Designs<depthbench::Cpu, R>().make(named.design, named.options)) {
    model.initialize(1);
    for (int i = 0; i < batch * seq; ++i) {
      tokens.push_back(std::int32_t(i * i + 3 * i + i / 5) % c.vocab_size);
      targets.push_back(i % 5 == 4 ? depthbench::ignored_target : std::int32_t(i * 7 + 2) % c.vocab_size);
    }
  }
  // Every parameter at a random value: gains near 1, matrices with rows of length about 1.2. Numbers that float holds.
  void randomize() {
    std::uint64_t seed = 50;
    for (auto& p : model.parameters().list()) {
      const auto z = random_numbers<float>(std::size_t(p.numel()), ++seed);
      const bool matrix = p.shape.rank() == 2 && !p.name.starts_with("embeddings");
      const float scale = matrix ? float(1.2 / std::sqrt(double(std::max(p.shape[0], p.shape[1])))) : p.part == depthbench::Part::residual ? 0.5f : 1.f;
      for (std::size_t i = 0; i < z.size(); ++i) p.value[i] = p.name.ends_with("norm.weight") ? 1 + 0.2f * z[i] : scale * z[i];
    }
  }
  VarOf<R> loss() {
    return model.loss(tape, tokens, targets, batch, double(std::count_if(targets.begin(), targets.end(), [](auto t) { return t >= 0; })));
  }
  std::vector<R> logits() {
    auto v = copy_of(model.logits(tape, tokens, batch));
    tape.clear();
    return v;
  }
  void gradients() {
    model.parameters().clear_grads();
    tape.backward(loss());
    model.parameters().settle_grads();
  }
};

inline std::string text_of(const Named& named) {
  std::string s = named.design;
  for (const auto& [name, value] : named.options.all()) s += fmt::format(" {}={}", name, value);
  return s;
}

}  // namespace depthbench_test
