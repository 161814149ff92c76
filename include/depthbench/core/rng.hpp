// Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).
// A number is a pure function of (seed, stream, index): any thread can make any of them, in any order,
// and the values do not depend on how the work was divided.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <utility>
#include <vector>

namespace depthbench {

class Rng {
 public:
  constexpr explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : seed_(seed), stream_(stream) {}

  // A generator for a named purpose, independent of all others of this seed.
  constexpr Rng split(std::uint64_t purpose) const { return Rng(seed_, mix(stream_ * 0x9e3779b97f4a7c15u + purpose + 1)); }

  // 128 random bits for counter `index`.
  constexpr std::array<std::uint32_t, 4> block(std::uint64_t index) const {
    std::array<std::uint32_t, 4> c{std::uint32_t(index), std::uint32_t(index >> 32), std::uint32_t(stream_),
                                   std::uint32_t(stream_ >> 32)};
    std::uint32_t k0 = std::uint32_t(seed_), k1 = std::uint32_t(seed_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0], p1 = std::uint64_t{0xCD9E8D57u} * c[2];
      c = {std::uint32_t(p1 >> 32) ^ c[1] ^ k0, std::uint32_t(p1), std::uint32_t(p0 >> 32) ^ c[3] ^ k1, std::uint32_t(p0)};
      k0 += 0x9E3779B9u;  // Weyl constants of the paper
      k1 += 0xBB67AE85u;
    }
    return c;
  }
  constexpr std::uint64_t bits(std::uint64_t index) const {
    const auto b = block(index);
    return b[0] | std::uint64_t{b[1]} << 32;
  }
  // Uniform in (0, 1): 53 random bits, never 0 and never 1.
  constexpr double uniform(std::uint64_t index) const { return (double(bits(index) >> 11) + 0.5) * 0x1p-53; }

  // Uniform integer in [0, n), unbiased to 2^-64 (multiply-shift).
  constexpr std::uint64_t below(std::uint64_t index, std::uint64_t n) const {
    return std::uint64_t((static_cast<unsigned __int128>(bits(index)) * n) >> 64);
  }

  // Standard normal, Box-Muller.
  double normal(std::uint64_t index) const {
    const auto b = block(index);
    const double u = (double((b[0] | std::uint64_t{b[1]} << 32) >> 11) + 0.5) * 0x1p-53;
    const double v = double((b[2] | std::uint64_t{b[3]} << 32) >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

  // Normal cut off at +-bound standard deviations, by drawing again.
  double truncated_normal(std::uint64_t index, double bound) const {
    for (std::uint64_t attempt = 0;; ++attempt) {
      const double z = Rng(seed_, mix(stream_ ^ (attempt << 48))).normal(index);
      if (std::fabs(z) <= bound) return z;
    }
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser (Steele, Lea, Flood 2014)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t seed_, stream_;
};

// A random order of 0..n-1 (Fisher-Yates).
inline std::vector<std::uint64_t> shuffled(std::uint64_t n, const Rng& rng) {
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  for (std::uint64_t i = n; i > 1; --i) std::swap(order[i - 1], order[rng.below(i, i)]);
  return order;
}

}  // namespace depthbench
