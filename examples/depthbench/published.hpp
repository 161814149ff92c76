// Losses that others reported, for a panel beside ours. Reported, not measured here.
//   source: keyu-wang-2002/DepthBench-Website, read by its authors from figure 2 of arXiv 2609.32534; 400M parameters,
//   n_layers 16 .. 70, FineWeb-Edu, validation loss in nats a token (by document, the published convention).
#pragma once
#include <array>

namespace depthbench::app {

inline constexpr std::array<int, 7> published_layers{16, 20, 24, 28, 32, 42, 70};
inline constexpr std::array<int, 7> published_widths{1216, 1120, 1024, 960, 896, 800, 640};
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

}  // namespace depthbench::app
