// The share of late pairs whose score is strong: one number of a matrix.        source: the DepthBench paper, section on effective depth
//   late: in the last three quarters of the L blocks. The paper does not say whether one index or both must be late.
#pragma once
#include <vector>

#include "depthbench/analysis/estimate.hpp"

namespace depthbench {

inline constexpr double strong_causal = 0.45, strong_permutation = 0.15;
enum class Late { both, either };

struct StrongFraction {
  int strong = 0, pairs = 0;
  double fraction() const { return pairs == 0 ? std::numeric_limits<double>::quiet_NaN() : double(strong) / pairs; }
};

// score (L, L), row-major; pairs i < j.
inline StrongFraction strong_fraction(const std::vector<double>& score, int layers, double threshold, Late late = Late::both) {
  StrongFraction f;
  for (int i = 0; i < layers; ++i) for (int j = i + 1; j < layers; ++j) {
    if (4 * (late == Late::both ? i : j) < layers) continue;  // i < j: both are late if i is, one is if j is
    ++f.pairs;
    f.strong += score[std::size_t(i * layers + j)] > threshold;
  }
  return f;
}

}  // namespace depthbench
