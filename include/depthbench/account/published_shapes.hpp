// The shapes of the published runs, with 16 heads and a vocabulary of 50280.
//   source: DepthBench configs/README.md (Table 3 of arXiv 2609.32534); 1600m has 8 KV heads and an FFN of 3 d, all others
//   one of 8 d / 3, rounded up to a multiple of 16. 300m_backbone: about 300 M parameters without embedding and head.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "depthbench/model/config.hpp"

namespace depthbench {

struct PublishedShape {
  std::string_view tier;
  int n_layers, d_model, ffn_hidden, n_kv_heads = 16;
  ModelConfig model() const {
    return {.vocab_size = 50280, .d_model = d_model, .n_layers = n_layers, .n_heads = 16, .n_kv_heads = n_kv_heads,
            .ffn_hidden = ffn_hidden};
  }
};

inline constexpr PublishedShape published_shapes[] = {
    {"200m", 24, 672, 1792}, {"200m", 18, 768, 2048}, {"200m", 12, 896, 2400},
    {"300m", 28, 800, 2144}, {"300m", 21, 896, 2400}, {"300m", 14, 1056, 2816},
    {"400m", 16, 1216, 3248}, {"400m", 20, 1120, 2992}, {"400m", 24, 1024, 2736}, {"400m", 26, 992, 2656}, {"400m", 28, 960, 2560},
    {"400m", 30, 928, 2480}, {"400m", 32, 896, 2400}, {"400m", 36, 864, 2304}, {"400m", 42, 800, 2144}, {"400m", 50, 736, 1968},
    {"400m", 56, 704, 1888}, {"400m", 62, 672, 1792}, {"400m", 70, 640, 1712},
    {"500m", 34, 992, 2656}, {"500m", 26, 1120, 2992}, {"500m", 17, 1344, 3584},
    {"1600m", 28, 2048, 6144, 8}, {"1600m", 40, 1728, 5184, 8}, {"1600m", 54, 1504, 4512, 8},
    {"300m_backbone", 16, 1248, 3328}, {"300m_backbone", 24, 1024, 2736}, {"300m_backbone", 32, 896, 2400},
    {"300m_backbone", 42, 768, 2048}, {"300m_backbone", 56, 672, 1792}, {"300m_backbone", 70, 608, 1632}, {"300m_backbone", 84, 544, 1456}};

// throws config_error for an unknown tier, naming those that there are
inline std::vector<ModelConfig> shapes_of_tier(std::string_view tier) {
  std::vector<ModelConfig> shapes;
  std::string tiers;
  std::string_view last;
  for (const auto& s : published_shapes) {
    if (s.tier == tier) shapes.push_back(s.model());
    if (s.tier != last) tiers += (tiers.empty() ? "" : ", ") + std::string(s.tier);
    last = s.tier;
  }
  if (shapes.empty()) fail<config_error>("there is no tier {}; there are {}", tier, tiers);
  return shapes;
}

inline bool is_published(const ModelConfig& c) {
  for (const auto& s : published_shapes) {
    const ModelConfig m = s.model();
    if (m.n_layers == c.n_layers && m.d_model == c.d_model && m.ffn_hidden == c.ffn_hidden && m.n_heads == c.n_heads &&
        m.n_kv_heads == c.n_kv_heads && m.vocab_size == c.vocab_size)
      return true;
  }
  return false;
}

}  // namespace depthbench
