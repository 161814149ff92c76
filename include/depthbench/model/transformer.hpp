// The backbone of the fair test: a Llama-like decoder whose residual path is a value.
//   Transformer<Cpu, float> model(cpu, config, designs.make("hc"));
//   model.initialize(seed);
//   tape.backward(model.loss(tape, tokens, targets, batch, labels));
#pragma once
#include <functional>

#include "depthbench/model/forward_pass.hpp"
#include "depthbench/op/embedding.hpp"
#include "depthbench/op/linear_cross_entropy.hpp"

namespace depthbench {

template <class Device, class R> class Transformer {
 public:
  using Variable = Var<Device, R>;
  using Tokens = std::span<const std::int32_t>;                       // of the host
  using Batch = std::shared_ptr<const TokenBatch<Device>>;            // tokens and targets where the device reads them
  using Observer = std::function<void(int l, Variable state)>;  // z_0 .. z_L as they come to be

  Transformer(Device& device, const ModelConfig& config, std::unique_ptr<Residual<Device, R>> residual)
      : parameters_(device) {
    check(config);
    b_.config = config;
    b_.residual = std::move(residual);
    auto& design = *b_.residual;
    design.configure(residual_shape());
    const auto init = [&](Weight w) { return Init::truncated_normal(config.init_std * design.init_scale(w)); };
    const Init plain = Init::truncated_normal(config.init_std);
    b_.embedding = &parameters_.declare("embeddings.weight", {config.vocab_size, config.d_model}, plain, Decay::yes, Part::embedding);
    for (int i = 0; i < config.n_layers; ++i) {
      b_.attention.push_back(declare_attention(parameters_, design.branch_name(2 * i), config, init));
      b_.ffn.push_back(declare_ffn(parameters_, design.branch_name(2 * i + 1), config, init));
    }
    design.declare(parameters_, residual_shape());
    b_.head_norm = &parameters_.declare("lm_head.norm.weight", {config.d_model}, Init::constant(1), Decay::yes, Part::norm);
    b_.head = &parameters_.declare("lm_head.w_out.weight", {config.vocab_size, config.d_model}, plain, Decay::yes, Part::head);
  }

  void initialize(std::uint64_t seed) { parameters_.allocate(seed); }

  const ModelConfig& config() const { return b_.config; }
  Residual<Device, R>& residual() { return *b_.residual; }
  Parameters<Device, R>& parameters() { return parameters_; }
  ResidualShape residual_shape() const { return b_.residual_shape(); }
  void swap(int i, int j) { b_.residual->swap(parameters_, i, j); }  // blocks; a second call restores

  // tokens: Tokens or a Batch, `batch` rows of equal length, one after the other.
  template <class T> ForwardPass<Device, R> begin(Tape<Device, R>& tape, const T& tokens, int batch) {
    const AttentionShape shape = attention_shape(count(tokens), batch);
    if (b_.rope.seq < shape.seq) {
      b_.rope = RopeTable<R>(shape.seq, b_.config.head_dim(), b_.config.rope_theta);
      b_.rope.place(tape.device());
    }
    const Variable x = [&] {
      const auto scope = tape.device().profile().within(Part::embedding);
      return embedding<Device, R>(tokens, tape.use(*b_.embedding));
    }();
    return {b_, x, shape};
  }
  // -> the head's normed input (B T, d)
  template <class T>
  Variable forward(Tape<Device, R>& tape, const T& tokens, int batch, Activations activations = Activations::keep, const Observer& observe = {}) {
    auto pass = begin(tape, tokens, batch);
    const auto show = [&] {
      if (observe) observe(pass.block(), tape.no_grad([&] { return std::vector<Variable>{pass.state()}; })[0]);
    };
    for (; !pass.done(); pass.step(activations)) show();
    show();
    return pass.finish();
  }

  // -> (B T, V)
  Variable logits(Tape<Device, R>& tape, Tokens tokens, int batch, const Observer& observe = {}) {
    return head(forward(tape, tokens, batch, Activations::keep, observe));
  }
  Variable head(Variable h) {                                                    // h normed
    const auto scope = h.tape->device().profile().within(Part::head);
    return linear(h, h.tape->use(*b_.head));
  }
  Variable decode(Variable r) { return head(b_.norm(r)); }                       // r a read-out: the logit lens

  // Sum of the cross-entropies of labelled positions / labels.   nll_out: see linear_cross_entropy.
  Variable loss(Tape<Device, R>& tape, Tokens tokens, Tokens targets, int batch, double labels,
                Activations activations = Activations::keep, R* nll_out = nullptr) {
    return head_loss(forward(tape, tokens, batch, activations), targets, labels, nll_out);
  }
  Variable head_loss(Variable h, Tokens targets, double labels, R* nll_out = nullptr) {
    const auto scope = h.tape->device().profile().within(Part::head);
    return linear_cross_entropy(h, h.tape->use(*b_.head), targets, labels, nll_out);
  }
  Variable head_loss(Variable h, const Batch& batch, double labels) {
    const auto scope = h.tape->device().profile().within(Part::head);
    check_targets(batch->host_targets(), h.rows(), b_.config.vocab_size);
    return linear_cross_entropy<Device, R>(h, h.tape->use(*b_.head), batch->targets(), labels);
  }

 private:
  static std::size_t count(Tokens tokens) { return tokens.size(); }
  static std::size_t count(const Batch& batch) { return std::size_t(batch->size()); }
  AttentionShape attention_shape(std::size_t tokens, int batch) const {
    if (batch < 1 || tokens == 0 || tokens % std::size_t(batch) != 0)
      fail<shape_error>("transformer: {} tokens do not make {} rows of equal length", tokens, batch);
    return {batch, int(tokens) / batch, b_.config.n_heads, b_.config.n_kv_heads, b_.config.head_dim()};
  }

  Backbone<Device, R> b_;
  Parameters<Device, R> parameters_;
};

}  // namespace depthbench
