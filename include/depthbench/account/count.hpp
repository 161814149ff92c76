// Counts a model by running it without data (backend/shape_only.hpp): the code that trains is the code that is counted, so
// a design of one's own needs no formula.
//   const Cost cost = count({.vocab_size = 50280, .d_model = 1024, ...}, std::make_unique<Hc<ShapeOnly, float>>(), {.seq_len = 4096});
// In closed form stands the KV cache alone, since the library has no decoding loop.
#pragma once
#include <vector>

#include "depthbench/account/cost.hpp"
#include "depthbench/account/work.hpp"
#include "depthbench/backend/shape_only.hpp"
#include "depthbench/model/transformer.hpp"
#include "depthbench/train/adamw.hpp"

namespace depthbench {

// Keys and values of all blocks: 2 L kv_width numbers a token, in bfloat16. A token's depth slots (MoDA) are read while
// that token is made and by no later one: they take no cache.
inline double kv_cache_bytes(const ModelConfig& c, std::int64_t tokens) { return 4.0 * c.n_layers * c.kv_width() * double(tokens); }

// Sizes beyond what the machine's integers, or a sensible account, hold.
inline void check_countable(const ModelConfig& c, const CountOptions& o) {
  check(c);
  if (o.batch < 1 || o.seq_len < 1) fail<config_error>("account: batch {} of seq_len {}, needs 1 or more of both", o.batch, o.seq_len);
  constexpr std::int64_t most_tokens = std::int64_t{1} << 22;
  if (o.seq_len > most_tokens || o.batch > most_tokens / o.seq_len)
    fail<config_error>("account: batch {} of seq_len {} is more than {} tokens", o.batch, o.seq_len, most_tokens);
  const double d = c.d_model, L = c.n_layers, V = c.vocab_size, f = c.ffn_hidden, kv = c.kv_width();
  const double parameters = 2 * V * d + L * d * (2 * d + 2 * kv + 3 * f), tokens = double(o.batch * o.seq_len);
  constexpr double limit = 9.2e18, streams = 8, element = 4;  // 2^63; 8 streams and FFNs' widths are the widest rows
  if (4 * element * parameters > limit || element * L * tokens * (streams * 16 * d + 6 * f + V) > limit || streams * d > 2.1e9)
    fail<config_error>("account: {:.3g} parameters and {:.3g} tokens take more than 2^63 bytes", parameters, tokens);
}

namespace detail {

inline ParameterCounts parameters_of(Parameters<ShapeOnly, float>& p) {
  const std::int64_t final_norm = p["lm_head.norm.weight"].numel();
  const std::int64_t backbone = p.numel(Part::backbone) + p.numel(Part::norm) - final_norm;
  return {p.numel(Part::embedding), backbone, p.numel(Part::residual), final_norm, p.numel(Part::head)};
}

struct CountedStep {
  BothPasses flops, bytes;
  Tally optimizer;
  double saved, peak;
};

inline CountedStep count_step(Transformer<ShapeOnly, float>& model, Adamw<ShapeOnly, float>& adamw, Tape<ShapeOnly, float>& tape,
                              std::span<const std::int32_t> tokens, const CountOptions& o, Activations activations) {
  auto& device = tape.device();
  const std::size_t held = device.memory().in_use();
  device.memory().reset_peak();
  device.profile().start();
  const auto loss = model.loss(tape, tokens, tokens, int(o.batch), double(tokens.size()), activations);
  CountedStep step{};
  step.saved = double(device.memory().in_use() - held);
  tape.backward(loss);
  adamw.step(1e-3);
  step.peak = double(device.memory().peak());
  const auto both = [&](double Tally::*what) {
    const auto pass = [&](Pass p) { return work_of(device.profile(), p, what, double(o.batch)); };
    return BothPasses{pass(Pass::forward), pass(Pass::backward)};
  };
  step.flops = both(&Tally::flops);
  step.bytes = both(&Tally::bytes);
  step.optimizer = device.profile()[Section::optimizer];
  return step;
}

}  // namespace detail

// The parameters alone: what the model declares.
inline ParameterCounts count_parameters(const ModelConfig& config, std::unique_ptr<Residual<ShapeOnly, float>> design) {
  check_countable(config, {});
  ShapeOnly device(1);
  Transformer<ShapeOnly, float> model(device, config, std::move(design));
  return detail::parameters_of(model.parameters());
}

inline Cost count(const ModelConfig& config, std::unique_ptr<Residual<ShapeOnly, float>> design, const CountOptions& o) {
  check_countable(config, o);
  ShapeOnly device(o.threads);
  device.set_products(o.bf16_products ? Products::bf16 : Products::fp32);
  Transformer<ShapeOnly, float> model(device, config, std::move(design));
  auto& parameters = model.parameters();
  Cost cost;
  cost.model = config;
  cost.batch = o.batch;
  cost.seq_len = o.seq_len;
  cost.parameters = detail::parameters_of(parameters);

  auto grown = [&, before = device.memory().in_use()]() mutable {
    const std::size_t now = device.memory().in_use();
    return double(now - std::exchange(before, now));
  };
  model.initialize(0);
  cost.memory.parameters = cost.memory.gradients = grown() / 2;  // one slab of each
  Adamw<ShapeOnly, float> adamw(parameters, {});
  cost.memory.moments = grown();

  Tape<ShapeOnly, float> tape(device);
  const std::vector<std::int32_t> tokens(std::size_t(o.batch * o.seq_len), 0);
  const auto kept = detail::count_step(model, adamw, tape, tokens, o, Activations::keep);
  const auto again = detail::count_step(model, adamw, tape, tokens, o, Activations::recompute);
  cost.flops = kept.flops;
  cost.bytes = kept.bytes;
  cost.recompute_flops = again.flops.backward.total() - kept.flops.backward.total();
  cost.optimizer_flops = kept.optimizer.flops;
  cost.optimizer_bytes = kept.optimizer.bytes;
  cost.memory.saved = kept.saved;
  cost.memory.peak = kept.peak;
  cost.memory.saved_recompute = again.saved;
  cost.memory.peak_recompute = again.peak;

  device.memory().reset_peak();
  const std::size_t held = device.memory().in_use();
  tape.no_grad([&] { return std::vector{model.logits(tape, std::span(tokens).first(std::size_t(o.batch)), int(o.batch))}; });
  cost.memory.decode = double(device.memory().peak() - held);
  tape.clear();
  cost.kv_cache = kv_cache_bytes(config, o.seq_len);
  return cost;
}

}  // namespace depthbench
