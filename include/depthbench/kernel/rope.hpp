// Rotary position embedding (Su et al. 2021, arXiv 2104.09864), NeoX half-split pairs (j, j + h/2):
//   angle(t, j) = t theta^(-2 j / h);   (a, b) -> (a cos - b sin, b cos + a sin)
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "depthbench/core/error.hpp"

namespace depthbench {

// cos and sin of every position and pair, (T, h / 2) each.
template <class R> struct RopeTable {
  int seq = 0, head_dim = 0;
  std::vector<R> cos, sin;
  std::shared_ptr<R> placed;  // both, one after the other, in the memory of a device that cannot read the host's

  RopeTable() = default;
  RopeTable(int seq_len, int head, double theta) : seq(seq_len), head_dim(head) {
    if (head % 2 != 0) fail<shape_error>("rope: the head size is {}, needs an even number", head);
    const int half = head / 2;
    cos.resize(std::size_t(seq) * half);
    sin.resize(std::size_t(seq) * half);
    std::vector<double> turn(std::size_t(half), 0.0);  // of one position
    for (int j = 0; j < half; ++j) turn[std::size_t(j)] = std::pow(theta, -2.0 * j / head);
    for (int t = 0; t < seq; ++t) for (int j = 0; j < half; ++j) {
      const double angle = t * turn[std::size_t(j)];
      cos[std::size_t(t) * half + j] = R(std::cos(angle));
      sin[std::size_t(t) * half + j] = R(std::sin(angle));
    }
  }
  template <class Device> void place(Device& device) {
    if constexpr (!Device::host_memory) {
      const std::size_t n = cos.size();
      placed = {device.memory().template acquire<R>(2 * n), [&memory = device.memory(), n](R* p) { memory.release(p, 2 * n * sizeof(R)); }};
      device.upload(placed.get(), cos.data(), n);
      device.upload(placed.get() + n, sin.data(), n);
    }
  }
  // Where bodies read them.
  const R* cosines() const { return placed ? placed.get() : cos.data(); }
  const R* sines() const { return placed ? placed.get() + cos.size() : sin.data(); }
  const R* cos_at(int t) const { return cos.data() + std::size_t(t) * (head_dim / 2); }
  const R* sin_at(int t) const { return sin.data() + std::size_t(t) * (head_dim / 2); }
};

// y = c * rotate(x) of one head at one position; the inverse turns the other way. y is not x.
enum class Turn { forward, back };
template <Turn turn, class R>
inline void rotate(const R* __restrict x, R* __restrict y, int head, const R* __restrict cos, const R* __restrict sin, R c) {
  const int half = head / 2;
  for (int j = 0; j < half; ++j) {
    const R a = x[j], b = x[j + half], s = turn == Turn::forward ? sin[j] : -sin[j];
    y[j] = c * (a * cos[j] - b * s);
    y[j + half] = c * (b * cos[j] + a * s);
  }
}

}  // namespace depthbench
