// What a model is: its shape and its residual design. Names are those of OLMo-core.
#pragma once
#include <cstdint>
#include <string>

#include "depthbench/core/error.hpp"

namespace depthbench {

struct ModelConfig {
  int vocab_size = 257;
  int d_model = 128;
  int n_layers = 4;      // L blocks, of two sublayers each
  int n_heads = 4;
  int n_kv_heads = 4;
  int ffn_hidden = 352;
  double rope_theta = 10000;
  double norm_eps = 1e-6;
  double init_std = 0.02;  // truncated at 3 standard deviations

  int head_dim() const { return d_model / n_heads; }
  int kv_width() const { return n_kv_heads * head_dim(); }
  int sublayers() const { return 2 * n_layers; }

  // 8 d / 3, rounded up to a multiple of 16: every 200M to 500M shape of the paper.
  static int default_ffn(int d_model) { return (8 * d_model / 3 + (8 * d_model % 3 != 0) + 15) / 16 * 16; }
};

inline void check(const ModelConfig& c) {
  const auto positive = [](const char* what, int v) {
    if (v < 1) fail<config_error>("model: {} is {}, needs 1 or more", what, v);
  };
  positive("vocab_size", c.vocab_size);
  positive("d_model", c.d_model);
  positive("n_layers", c.n_layers);
  positive("n_heads", c.n_heads);
  positive("n_kv_heads", c.n_kv_heads);
  positive("ffn_hidden", c.ffn_hidden);
  if (c.d_model % c.n_heads != 0)
    fail<config_error>("model: d_model {} does not divide into {} heads", c.d_model, c.n_heads);
  if (c.head_dim() % 2 != 0)
    fail<config_error>("model: the head size d_model / n_heads is {}, rotary positions need an even one", c.head_dim());
  if (c.n_heads % c.n_kv_heads != 0)
    fail<config_error>("model: {} heads do not divide into {} KV heads", c.n_heads, c.n_kv_heads);
  if (!(c.rope_theta > 0)) fail<config_error>("model: rope_theta is {}, needs a positive number", c.rope_theta);
  if (!(c.norm_eps > 0)) fail<config_error>("model: norm_eps is {}, needs a positive number", c.norm_eps);
}

}  // namespace depthbench
