// What a model costs: plain numbers, filled in by count() (account/count.hpp).
#pragma once
#include <cstdint>

#include "depthbench/account/work.hpp"
#include "depthbench/model/config.hpp"

namespace depthbench {

struct CountOptions {
  std::int64_t seq_len = 4096, batch = 1;
  int threads = 1;  // of the machine the memory is counted for: each has scratch of its own
  bool bf16_products = false;  // inputs of products are rounded, which takes memory
};

struct ParameterCounts {
  std::int64_t embedding = 0;   // V d
  std::int64_t backbone = 0;    // matrices of attention and FFN, and one gain a sublayer
  std::int64_t residual = 0;    // what the design adds to Pre-LN
  std::int64_t final_norm = 0;  // d
  std::int64_t head = 0;        // V d
  std::int64_t total() const { return embedding + backbone + residual + final_norm + head; }
};

// Bytes of tensors. A step is forward, backward and AdamW over a batch.
struct MemoryCounts {
  double parameters = 0, gradients = 0, moments = 0;
  double saved = 0, saved_recompute = 0;  // held between the passes, with every activation kept or blocks run again
  double peak = 0, peak_recompute = 0;    // all of it at the worst moment
  double decode = 0;                      // activations of one new token a sequence, without the cache
};

struct Cost {
  ModelConfig model;
  std::int64_t batch = 1, seq_len = 0;
  ParameterCounts parameters;
  BothPasses flops, bytes;              // of one sequence, activations kept
  double recompute_flops = 0;      // added to the backward pass by recomputation
  double optimizer_flops = 0, optimizer_bytes = 0;  // of one step
  MemoryCounts memory;             // of the batch
  double kv_cache = 0;             // bytes of one sequence, bfloat16
  double step_flops() const { return double(batch) * (flops.forward.total() + flops.backward.total()) + optimizer_flops; }
  double step_bytes() const { return double(batch) * (bytes.forward.total() + bytes.backward.total()) + optimizer_bytes; }
  // weights, cache and one token's activations
  double inference_peak() const { return memory.parameters + memory.decode + double(batch) * kv_cache; }
};

}  // namespace depthbench
