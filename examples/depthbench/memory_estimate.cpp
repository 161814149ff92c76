#include "memory_estimate.hpp"

#include <algorithm>

namespace depthbench::app {

MemoryEstimate memory_estimate(const RunConfig& c, const PartCounts& counts) {
  const auto& m = c.model;
  const double d = m.d_model, L = m.n_layers, K = 2 * L, kv = m.kv_width(), f = m.ffn_hidden,
               V = m.vocab_size;
  const double tokens =
      double(std::min<std::int64_t>(c.train.micro_batch, c.train.windows()) * c.train.seq_len);
  const auto option = [&](const char* name, double fallback) {
    const auto it = c.options.find(name);
    return it == c.options.end() ? fallback : it->second;
  };

  double carry = d, left = d,
         boundary = 2 * d;  // floats a token: the carry; left by a sublayer; kept between blocks
  double partial = d;       // parameters of one row program
  double slots = 0;         // moda: keys and values of earlier blocks, and their gradients
  if (c.design == "hc" || c.design == "mhc") {
    const double n = option("n_streams", 4);
    carry = n * d;
    left = n * d + n * (n + 2);
    boundary = left + d;
    partial = (n + 2) * (d + n + 1) + d;
  } else if (c.design == "attn_res" || c.design == "block_attn_res") {
    left = (c.design == "attn_res" ? d : 1.75 * d) + 4 + K / 2;  // in groups also the running sums
    boundary = 2 * (d + 2 + K / 2) + d;
  } else if (c.design == "moda") {
    slots = 5 * kv;
  }
  const double block = 6 * d + 2 * kv + m.n_heads + 3 * f + 2 * left + slots;
  const double kept = c.activations == "recompute" ? L * boundary + block : L * block;
  const double in_flight = 3 * f + 2 * d + 2 * carry;
  const double rows = std::clamp(4194304.0 / 4 / V, 64.0, std::max(tokens, 64.0));
  const double loss = V * d + std::max(rows * V, tokens * in_flight);

  constexpr double element = sizeof(float);
  MemoryEstimate e;
  e.parameters = e.gradients = element * double(counts.total());
  e.moments = 2 * e.parameters;
  e.activations = element * (tokens * (kept + 4 * d) + loss + 16 * partial);
  return e;
}

}  // namespace depthbench::app
