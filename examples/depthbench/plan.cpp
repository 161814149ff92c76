#include "plan.hpp"

#include <algorithm>

#include "record.hpp"
#include "words.hpp"

namespace depthbench::app {

std::string run_name(const RunConfig& c) {
  return fmt::format("{}_{}x{}_lr{}_seed{}", c.design, c.model.n_layers, c.model.d_model, c.train.lr,
                     c.train.seed);
}

namespace {

// The peak of a step: what the same code takes when it is run without data.
std::string memory_text(const Engine& engine, const RunConfig& c) {
  const auto counted = engine.counted_designs();
  if (std::find(counted.begin(), counted.end(), c.design) == counted.end())
    return fmt::format("not counted: {} was added for training alone", c.design);
  const Cost cost = engine.account(c.design, options_of(c, engine.designs()), c.model,
                                   {.seq_len = c.train.seq_len,
                                    .batch = std::min(c.train.micro_batch, c.train.windows()),
                                    .threads = c.threads ? c.threads : Engine::hardware_threads(),
                                    .bf16_products = c.train.precision != Precision::fp32});
  const MemoryCounts& m = cost.memory;
  const double peak = c.train.activations == Activations::recompute ? m.peak_recompute : m.peak;
  return fmt::format("about {}: parameters {}, gradients {}, moments {}, activations {}", bytes_text(peak),
                     bytes_text(m.parameters), bytes_text(m.gradients), bytes_text(m.moments),
                     bytes_text(peak - m.parameters - m.gradients - m.moments));
}

}  // namespace

std::string plan_text(const Engine& engine, const RunConfig& c, const Data& data, const std::string& folder) {
  const PartCounts p = engine.count(c);
  const auto& m = c.model;
  const std::int64_t steps = total_steps(c.train, p.total()), tokens = steps * c.train.batch_tokens;
  std::string options;
  for (const auto& [name, value] : c.options)
    options += fmt::format("{}{} = {}", options.empty() ? " with " : ", ", name, value);

  std::string out;
  const auto line = [&](const char* name, const std::string& text) {
    out += fmt::format("{:<12}{}\n", name, text);
  };
  line("depthbench", version());
  line("design", c.design + options);
  line("shape",
       fmt::format("L = {} blocks, d = {}, d / L = {:.4g}, {} heads of {}{}, FFN {}, vocabulary {}",
                   m.n_layers, m.d_model, double(m.d_model) / m.n_layers, m.n_heads, m.head_dim(),
                   m.n_kv_heads != m.n_heads ? fmt::format(" ({} for keys and values)", m.n_kv_heads) : "",
                   m.ffn_hidden, m.vocab_size));
  line("parameters", fmt::format("{} = embedding {} + backbone {} + norm {} + residual {} + head {}",
                                 p.total(), p.embedding, p.backbone, p.norm, p.residual, p.head));
  line("data", data.described);
  line("yardstick", fmt::format("unigram entropy of the held-out part {:.4f} nats", data.unigram_entropy));
  line("training",
       fmt::format("{} steps of {} tokens ({} windows of {}, {} at a time), {} tokens, {:.3g} a parameter, "
                   "{:.3g} epochs",
                   steps, c.train.batch_tokens, c.train.windows(), c.train.seq_len,
                   std::min(c.train.micro_batch, c.train.windows()), count_text(double(tokens)),
                   double(tokens) / double(p.total()), double(tokens) / double(data.train_tokens)));
  line("rate", fmt::format("peak {:g} after {} steps, then a cosine to {:g}; AdamW, decay {:g}, clip {:g}",
                           c.train.lr, c.train.warmup_steps(steps), c.train.lr * c.train.final_lr_fraction,
                           c.train.adamw.weight_decay, c.train.adamw.clip));
  line("memory", memory_text(engine, c));
  line("machine",
       fmt::format("{} threads, products by {} in {}, {}", c.threads ? c.threads : Engine::hardware_threads(),
                   Engine::gemm_name(), c.precision, Engine::vector_width()));
  line("folder", folder);
  return out;
}

double flops_per_token(const RunConfig& c, const PartCounts& p) {
  const double attention =
      6.0 * double(c.train.seq_len) * c.model.d_model * c.model.n_layers;  // causal: half of 12 T d a layer
  return 6.0 * double(p.backbone + p.residual + p.head) + attention;
}

}  // namespace depthbench::app
