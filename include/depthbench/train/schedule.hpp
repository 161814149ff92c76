// Learning rate of step s = 1 .. total: linear warmup over W steps, then a cosine to `floor` times the peak.
//   s < W: peak s / W;   else peak (floor + (1 - floor) (1 + cos(pi (s - W) / (total - W))) / 2);   at s = total exactly floor
#pragma once
#include <cmath>
#include <cstdint>
#include <numbers>

namespace depthbench {

inline double learning_rate(std::int64_t step, std::int64_t total, std::int64_t warmup, double peak, double floor) {
  if (step < warmup) return peak * double(step) / double(warmup);
  if (total <= warmup) return peak;
  const double done = double(step - warmup) / double(total - warmup);
  return peak * (floor + (1 - floor) * (1 + std::cos(std::numbers::pi * done)) / 2);
}

}  // namespace depthbench
