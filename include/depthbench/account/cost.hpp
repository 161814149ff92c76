// What a model costs: plain numbers, filled in by count() (account/count.hpp).
//   FLOPs: +, *, / and every function count as one, a multiply-add as two.   bytes: float32, each array once a pass
#pragma once
#include <cstdint>

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

// FLOPs, or bytes moved, of one pass over one sequence of T tokens.
struct Work {
  double gemm = 0;        // matrix products of attention and FFN
  double attention = 0;   // scores, softmax and weighted sums over the past; half of the square, T / 2 keys a query
  double residual = 0;    // all that the design does but norms: its products, mixing, coefficients, additions, depth slots
  double residual_gemm = 0, residual_attention = 0;  // of which matrix products, and attention over depth
  double norms = 0;       // sums of squares and scaling, of branch norms, streams, sources and the last norm
  double head = 0;        // the product with the vocabulary
  double other = 0;       // SwiGLU, cross-entropy, embedding
  double body() const { return gemm + attention; }
  double total() const { return body() + residual + norms + head + other; }
  double attention_share() const { return attention / body(); }
};

struct Pass2 {
  Work forward, backward;
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
  Pass2 flops, bytes;              // of one sequence, activations kept
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
