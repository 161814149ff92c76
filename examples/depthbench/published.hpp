// Losses that others reported, for a panel beside ours. Reported, not measured here.
//   source: keyu-wang-2002/DepthBench-Website, read by its authors from figure 2 of arXiv 2609.32534; 400M parameters,
//   n_layers 16 .. 70, FineWeb-Edu, validation loss in nats a token (by document, the published convention).
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "depthbench/account/published_shapes.hpp"

namespace depthbench::app {

inline constexpr std::array<int, 7> published_layers{16, 20, 24, 28, 32, 42, 70};
struct PublishedLosses {
  const char* design;
  std::array<double, 7> loss;  // 0: not reported
};
inline constexpr PublishedLosses published_losses[] = {
    {"pre_ln", {2.759, 2.759, 2.765, 2.774, 2.782, 0, 0}},
    {"sandwich_ln", {2.765, 2.754, 2.757, 2.757, 2.766, 0, 0}},
    {"lns", {2.749, 2.737, 2.74, 2.74, 2.739, 0, 0}},
    {"deepnorm", {2.79, 2.779, 2.796, 2.792, 2.798, 0, 0}},
    {"keel", {2.781, 2.768, 2.767, 2.771, 2.775, 0, 0}},
    {"hc", {2.729, 2.716, 2.702, 2.714, 2.7, 2.691, 2.682}},
    {"mhc", {2.72, 2.72, 2.71, 2.727, 2.721, 0, 0}},
    {"attn_res", {2.751, 2.728, 2.726, 2.722, 2.718, 2.708, 2.702}},
    {"block_attn_res", {2.734, 2.716, 2.719, 2.726, 2.73, 0, 0}},
    {"moda", {2.753, 2.746, 2.764, 2.761, 2.78, 0, 0}},
};

// d / L of the 400M shape with so many blocks.
inline double published_ratio(int layers) {
  for (const ModelConfig& m : shapes_of_tier("400m")) if (m.n_layers == layers) return double(m.d_model) / layers;
  fail<config_error>("published losses: no 400M shape has {} blocks", layers);
}
// Which colour a reported design has beside ours: that of the same design, if it is there; the others follow in their order.
inline int published_color(const std::vector<std::string>& ours, const std::string& design) {
  int color = int(ours.size());
  for (const auto& p : published_losses) {
    const auto at = std::find(ours.begin(), ours.end(), p.design);
    if (design == p.design) return at == ours.end() ? color : int(at - ours.begin());
    color += at == ours.end();
  }
  return color;
}

}  // namespace depthbench::app
