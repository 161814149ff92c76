// A small random model of one design, and text for it. Only the design asked for is compiled.
#pragma once
#include "depthbench/analysis/sample.hpp"
#include "depthbench/model/transformer.hpp"
#include "tests/tape/fixture.hpp"

namespace depthbench_test {

template <template <class, class> class Design> struct Analyzed {
  using R = double;
  depthbench::Cpu cpu{2};
  depthbench::Tape<depthbench::Cpu, R> tape{cpu};
  depthbench::Transformer<depthbench::Cpu, R> model;
  depthbench::Sample sample;

  explicit Analyzed(int layers = 4, depthbench::DesignOptions options = {}, int heads = 2)
      : model(cpu, config(layers, heads), std::make_unique<Design<depthbench::Cpu, R>>(options)) {
    model.initialize(1);
    std::uint64_t seed = 50;
    for (auto& p : model.parameters().list()) {  // everything away from its initial value: gains near 1
      const auto z = random_numbers(std::size_t(p.numel()), ++seed);
      for (std::size_t i = 0; i < z.size(); ++i) p.value[i] = p.name.ends_with("norm.weight") ? 1 + 0.2 * z[i] : 0.4 * z[i];
    }
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < 3 * 6; ++i) tokens.push_back((i * i + 3 * i + i / 5) % 11);
    sample = depthbench::next_token_sample(tokens, 6);
  }
  static depthbench::ModelConfig config(int layers, int heads) {
    depthbench::ModelConfig c;
    c.vocab_size = 11;
    c.d_model = 8;
    c.n_layers = layers;
    c.n_heads = heads;
    c.n_kv_heads = 1;
    c.ffn_hidden = 12;
    return c;
  }
  depthbench::ForwardPass<depthbench::Cpu, R> begin() { return model.begin(tape, sample.tokens, sample.windows()); }
  std::vector<std::vector<R>> values() const {
    std::vector<std::vector<R>> all;
    for (const auto& p : model_parameters()) all.emplace_back(p.values().begin(), p.values().end());
    return all;
  }
  auto& model_parameters() const { return const_cast<Analyzed&>(*this).model.parameters().list(); }
};

}  // namespace depthbench_test
