// The recipe: how long, how much at a time, at which rate.
#pragma once
#include <cmath>
#include <cstdint>

#include "depthbench/model/transformer.hpp"
#include "depthbench/train/adamw.hpp"

namespace depthbench {

// fp32: all of it. bf16: matrix products take bfloat16 inputs and add up in float; parameters and moments stay float.
// bf16_pure: parameters and moments too hold bfloat16 numbers only (adamw.hpp); norms, gates, softmaxes stay float.
enum class Precision { fp32, bf16, bf16_pure };

struct TrainConfig {
  std::int64_t seq_len = 256;             // T, tokens of a window
  std::int64_t batch_tokens = 4096;       // of one optimizer step; a whole number of windows
  std::int64_t micro_batch = 4;           // windows of one forward pass; gradients add up over them
  std::int64_t steps = 0;                 // 0: from tokens_per_parameter
  double tokens_per_parameter = 20;       // of all parameters, embeddings included
  double lr = 2e-3;                       // the peak
  double warmup_fraction = 0.1;           // of the steps, linear from 0
  double final_lr_fraction = 0.1;         // of the peak, at the last step (cosine)
  AdamwConfig adamw;
  Precision precision = Precision::fp32;
  std::uint64_t seed = 0;                 // of initial values
  std::uint64_t data_seed = 42;           // of the order of windows
  Activations activations = Activations::keep;
  bool capture = false;                   // on a device that can: a step is captured once and replayed (a CUDA graph)
  std::int64_t gradient_parts = 0;        // of a step's batch, shared out to ranks and added in a fixed tree; 0: one a rank

  std::int64_t windows() const { return batch_tokens / seq_len; }
  std::int64_t parts(int ranks) const { return gradient_parts == 0 ? ranks : gradient_parts; }
  std::int64_t warmup_steps(std::int64_t total) const { return std::int64_t(std::llround(warmup_fraction * double(total))); }
};

inline void check(const TrainConfig& c) {
  const auto positive = [](const char* what, auto v) {
    if (!(v > 0)) fail<config_error>("train: {} is {}, needs a positive number", what, v);
  };
  if (c.seq_len < 2) fail<config_error>("train: seq_len is {}, needs 2 or more", c.seq_len);
  positive("batch_tokens", c.batch_tokens);
  positive("micro_batch", c.micro_batch);
  positive("lr", c.lr);
  if (c.steps < 0) fail<config_error>("train: steps is {}, needs 0 (from tokens_per_parameter) or more", c.steps);
  if (c.steps == 0) positive("tokens_per_parameter", c.tokens_per_parameter);
  if (c.batch_tokens % c.seq_len != 0)
    fail<config_error>("train: batch_tokens {} is not a whole number of windows of seq_len {}", c.batch_tokens, c.seq_len);
  if (c.gradient_parts < 0) fail<config_error>("train: gradient_parts is {}, needs 0 (one a rank) or more", c.gradient_parts);
  if (!(c.warmup_fraction >= 0 && c.warmup_fraction <= 1)) fail<config_error>("train: warmup_fraction is {}, needs 0 to 1", c.warmup_fraction);
  if (!(c.final_lr_fraction >= 0 && c.final_lr_fraction <= 1)) fail<config_error>("train: final_lr_fraction is {}, needs 0 to 1", c.final_lr_fraction);
}

// Whether so many ranks can share a step's batch.
inline void check(const TrainConfig& c, int ranks) {
  check(c);
  const std::int64_t parts = c.parts(ranks);
  if (parts % ranks != 0) fail<config_error>("train: gradient_parts is {}, needs a multiple of the {} ranks", parts, ranks);
  if (c.windows() % parts != 0)
    fail<config_error>("train: a step of {} windows (batch_tokens {} / seq_len {}) cannot be shared out to {} parts", c.windows(), c.batch_tokens,
                       c.seq_len, parts);
}

// Optimizer steps of a run of a model with so many parameters.
inline std::int64_t total_steps(const TrainConfig& c, std::int64_t parameters) {
  if (c.steps > 0) return c.steps;
  return std::max<std::int64_t>(1, std::llround(c.tokens_per_parameter * double(parameters) / double(c.batch_tokens)));
}

}  // namespace depthbench
