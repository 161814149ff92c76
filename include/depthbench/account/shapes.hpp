// The shapes that a budget of parameters allows, from wide and shallow to narrow and deep.
//   for (const FittedShape& s : fit_shapes({.budget = 400e6}, [](const ModelConfig& c) { return parameters of c; })) ...
// Widths are those the head rule allows: so many heads of an even size, or heads of one size. The FFN is
// ffn_factor d, rounded up to a multiple of 16. The parameters are counted by the caller's function: of the model's
// own declarations (count_parameters in count.hpp), with or without those of a residual design.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "depthbench/model/config.hpp"

namespace depthbench {

struct ShapeQuery {
  double budget = 0;
  double tolerance = 0.04;        // of the budget, on both sides: the published 400M shapes are 1 % under to 3.5 % over
  int vocab_size = 50280;
  int heads = 16;                 // 0: by head_size
  int head_size = 0;              // 0: any even one that d / heads is
  int heads_per_kv = 1;           // query heads that share keys and values
  double ffn_factor = 8.0 / 3;
  double min_aspect = 6, max_aspect = 110;  // d / L
  std::vector<int> layers;        // none: all
};

struct FittedShape {
  ModelConfig model;
  std::int64_t parameters = 0;  // as counted against the budget
  bool nearest = false;         // to the budget, of all widths of this depth
  double aspect() const { return double(model.d_model) / model.n_layers; }
};

using CountParameters = std::function<std::int64_t(const ModelConfig&)>;

inline ModelConfig shape_of(const ShapeQuery& q, int d, int L) {
  ModelConfig c{.vocab_size = q.vocab_size, .d_model = d, .n_layers = L};
  c.n_heads = q.heads > 0 ? q.heads : d / q.head_size;
  c.n_kv_heads = std::max(1, c.n_heads / q.heads_per_kv);
  c.ffn_hidden = int(std::ceil(q.ffn_factor * d / 16 - 1e-9)) * 16;
  return c;
}

inline void check(const ShapeQuery& q) {
  if (!(q.budget >= 1)) fail<config_error>("shapes: the budget is {}, needs 1 parameter or more", q.budget);
  if (q.budget > 5e17) fail<config_error>("shapes: {:.3g} parameters, gradients and moments take more than 2^63 bytes", q.budget);
  if (!(q.tolerance >= 0 && q.tolerance < 1)) fail<config_error>("shapes: tolerance is {}, needs 0 or more and less than 1", q.tolerance);
  if (q.vocab_size < 1) fail<config_error>("shapes: the vocabulary is {}, needs 1 or more", q.vocab_size);
  if (q.heads < 0 || q.head_size < 0 || (q.heads == 0 && q.head_size == 0))
    fail<config_error>("shapes: {} heads of size {}, needs a number of heads or a head size", q.heads, q.head_size);
  if (q.head_size % 2 != 0) fail<config_error>("shapes: the head size is {}, rotary positions need an even one", q.head_size);
  if (q.heads_per_kv < 1 || (q.heads > 0 && q.heads % q.heads_per_kv != 0))
    fail<config_error>("shapes: {} heads do not divide into groups of {} to a KV head", q.heads, q.heads_per_kv);
  if (!(q.ffn_factor > 0)) fail<config_error>("shapes: the FFN factor is {}, needs a positive number", q.ffn_factor);
  if (!(q.min_aspect > 0 && q.max_aspect >= q.min_aspect))
    fail<config_error>("shapes: d / L from {} to {} is no range of aspect ratios", q.min_aspect, q.max_aspect);
  for (const int L : q.layers) if (L < 1) fail<config_error>("shapes: {} layers, needs 1 or more", L);
}

// Sorted from the widest to the deepest. throws config_error, with the reason, if there is no shape.
inline std::vector<FittedShape> fit_shapes(const ShapeQuery& q, const CountParameters& count) {
  check(q);
  const double low = q.budget * (1 - q.tolerance), high = q.budget * (1 + q.tolerance);
  const int step = q.heads > 0 && q.head_size > 0 ? q.heads * q.head_size : q.heads > 0 ? 2 * q.heads : q.head_size;
  const int widest = q.heads > 0 && q.head_size > 0 ? step : 1 << 20;
  std::vector<FittedShape> found;
  FittedShape best;  // of all, whatever the tolerance
  const auto off = [&](const FittedShape& s) { return std::fabs(double(s.parameters) - q.budget); };
  const auto try_shape = [&](int d, int L) {
    FittedShape s{shape_of(q, d, L), 0};
    s.parameters = count(s.model);
    if (best.parameters == 0 || off(s) < off(best)) best = s;
    const bool wanted = q.layers.empty() || std::find(q.layers.begin(), q.layers.end(), L) != q.layers.end();
    if (wanted && double(s.parameters) >= low && double(s.parameters) <= high) found.push_back(s);
    return double(s.parameters);
  };
  for (int d = step; d <= widest; d += step) {
    const int shallowest = std::max(1, int(std::ceil(d / q.max_aspect - 1e-9))), deepest = int(std::floor(d / q.min_aspect + 1e-9));
    if (shallowest > deepest) continue;
    if (try_shape(d, shallowest) > high) {
      if (d > step || deepest > 1) break;  // wider ones are larger still
      continue;
    }
    int under = shallowest, over = deepest + 1;  // the parameters grow with the depth
    while (over - under > 1) {
      const int middle = (under + over) / 2;
      (double(count(shape_of(q, d, middle))) < low ? under : over) = middle;
    }
    for (int L = std::max(under, shallowest + 1); L <= deepest; ++L) if (try_shape(d, L) > high) break;
  }
  if (found.empty()) {
    if (best.parameters == 0)
      fail<config_error>("shapes: no width of the head rule (multiples of {}) has d / L from {} to {}", step, q.min_aspect, q.max_aspect);
    const double ends = 2.0 * q.vocab_size * best.model.d_model;
    if (ends > high)
      fail<config_error>("shapes: {:.4g} parameters are too few: embedding and head of {} tokens alone take {:.4g} at d = {}, "
                         "the narrowest the head rule allows", q.budget, q.vocab_size, ends, best.model.d_model);
    fail<config_error>("shapes: none has {:.4g} parameters within {:g} %{}; the nearest of the range is L = {}, d = {} with {}", q.budget,
                       100 * q.tolerance, q.layers.empty() ? "" : " at the depths asked for", best.model.n_layers, best.model.d_model,
                       best.parameters);
  }
  std::sort(found.begin(), found.end(), [](const FittedShape& a, const FittedShape& b) {
    return a.model.n_layers != b.model.n_layers ? a.model.n_layers < b.model.n_layers : a.model.d_model > b.model.d_model;
  });
  for (FittedShape& s : found) {
    const auto nearer = [&](const FittedShape& o) { return o.model.n_layers == s.model.n_layers && off(o) < off(s); };
    s.nearest = std::none_of(found.begin(), found.end(), nearer);
  }
  return found;
}

}  // namespace depthbench
