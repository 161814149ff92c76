// The backbone of the fair test: a Llama-like decoder whose residual path is a value.
//   Transformer<Cpu, float> model(cpu, config, designs.make("hc"));
//   model.initialize(seed);
//   tape.backward(model.loss(tape, tokens, targets, batch, labels));
#pragma once
#include <functional>

#include "depthbench/model/attention.hpp"
#include "depthbench/model/ffn.hpp"
#include "depthbench/op/embedding.hpp"
#include "depthbench/op/linear_cross_entropy.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

enum class Activations { keep, recompute };  // recompute: a block's inner values are made again in the backward pass

template <class Device, class R> class Transformer {
 public:
  using Variable = Var<Device, R>;
  using Tokens = std::span<const std::int32_t>;
  using Observer = std::function<void(int l, Variable state)>;  // z_0 .. z_L as they come to be

  Transformer(Device& device, const ModelConfig& config, std::unique_ptr<Residual<Device, R>> residual)
      : config_(config), residual_(std::move(residual)), parameters_(device) {
    check(config_);
    const ResidualShape shape = residual_shape();
    residual_->configure(shape);
    const auto init = [&](Weight w) { return Init::truncated_normal(config_.init_std * residual_->init_scale(w)); };
    const Init plain = Init::truncated_normal(config_.init_std);
    embedding_ = &parameters_.declare("embeddings.weight", {config_.vocab_size, config_.d_model}, plain, Decay::yes, Part::embedding);
    for (int i = 0; i < config_.n_layers; ++i) {
      attention_.push_back(declare_attention(parameters_, residual_->branch_name(2 * i), config_, init));
      ffn_.push_back(declare_ffn(parameters_, residual_->branch_name(2 * i + 1), config_, init));
    }
    residual_->declare(parameters_, shape);
    head_norm_ = &parameters_.declare("lm_head.norm.weight", {config_.d_model}, Init::constant(1), Decay::yes, Part::norm);
    head_ = &parameters_.declare("lm_head.w_out.weight", {config_.vocab_size, config_.d_model}, plain, Decay::yes, Part::head);
  }

  void initialize(std::uint64_t seed) { parameters_.allocate(seed); }

  const ModelConfig& config() const { return config_; }
  Residual<Device, R>& residual() { return *residual_; }
  Parameters<Device, R>& parameters() { return parameters_; }
  ResidualShape residual_shape() const { return {config_.d_model, config_.sublayers(), config_.norm_eps, config_.kv_width()}; }

  // tokens: `batch` rows of equal length, one after the other.   -> the head's normed input (B T, d)
  Variable forward(Tape<Device, R>& tape, Tokens tokens, int batch, Activations activations = Activations::keep, const Observer& observe = {}) {
    const AttentionShape shape = attention_shape(tokens, batch);
    if (rope_.seq < shape.seq) {
      rope_ = RopeTable<R>(shape.seq, config_.head_dim(), config_.rope_theta);
      rope_.place(tape.device());
    }
    auto carry = residual_->open(embedding(tokens, tape.use(*embedding_)));
    Variable u = residual_->read(carry, 0);
    for (int i = 0; i < config_.n_layers; ++i) {
      if (observe) observe(i, tape.no_grad([&] { return std::vector<Variable>{residual_->state(carry, i)}; })[0]);
      if (activations == Activations::keep && tape.recording()) {
        u = block(i, carry, u, shape);
      } else {  // values enter and leave the block as one list, u last
        auto values = tape.recompute([this, i, carry, u, shape] {
          auto inner = carry;
          const Variable next = block(i, inner, u, shape);
          inner.values.push_back(next);
          return inner.values;
        });
        u = values.back();
        values.pop_back();
        carry.values = std::move(values);
      }
    }
    if (observe) observe(config_.n_layers, tape.no_grad([&] { return std::vector<Variable>{residual_->state(carry, config_.n_layers)}; })[0]);
    return rms_norm(residual_->close(carry), tape.use(*head_norm_), residual_->head_eps(residual_shape()));
  }

  // -> (B T, V)
  Variable logits(Tape<Device, R>& tape, Tokens tokens, int batch, const Observer& observe = {}) {
    return linear(forward(tape, tokens, batch, Activations::keep, observe), tape.use(*head_));
  }

  // Sum of the cross-entropies of labelled positions / labels.   nll_out: see linear_cross_entropy.
  Variable loss(Tape<Device, R>& tape, Tokens tokens, Tokens targets, int batch, double labels,
                Activations activations = Activations::keep, R* nll_out = nullptr) {
    return linear_cross_entropy(forward(tape, tokens, batch, activations), tape.use(*head_), targets, labels, nll_out);
  }

 private:
  AttentionShape attention_shape(Tokens tokens, int batch) const {
    if (batch < 1 || tokens.empty() || tokens.size() % std::size_t(batch) != 0)
      fail<shape_error>("transformer: {} tokens do not make {} rows of equal length", tokens.size(), batch);
    return {batch, int(tokens.size()) / batch, config_.n_heads, config_.n_kv_heads, config_.head_dim()};
  }
  // Block i, from its attention's input to the next block's, or to nothing after the last (then u again).
  Variable block(int i, Carry<Device, R>& carry, Variable u, const AttentionShape& shape) {
    const auto attended = attention(u, attention_[i], shape, rope_, residual_->depth_slots(carry, 2 * i));
    residual_->leave_keys(carry, attended.k, attended.v, 2 * i);
    u = residual_->advance(carry, attended.y, 2 * i);
    const Variable y = ffn(u, ffn_[i]);
    if (i + 1 < config_.n_layers) return residual_->advance(carry, y, 2 * i + 1);
    residual_->write(carry, y, 2 * i + 1);
    return u;
  }

  ModelConfig config_;
  std::unique_ptr<Residual<Device, R>> residual_;
  Parameters<Device, R> parameters_;
  Parameter<R>*embedding_ = nullptr, *head_norm_ = nullptr, *head_ = nullptr;
  std::vector<AttentionWeights<R>> attention_;
  std::vector<FfnWeights<R>> ffn_;
  RopeTable<R> rope_;
};

}  // namespace depthbench
