// Singular values of small matrices, and what is made of them.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace depthbench {

// Of an m x n matrix (row-major), n of them, the largest first. One-sided Jacobi (Hestenes 1958): rotates pairs of columns
// until all are orthogonal; the lengths are then the singular values, each to full relative precision.
inline std::vector<double> singular_values(std::vector<double> a, int m, int n) {
  const auto at = [&](int i, int j) -> double& { return a[std::size_t(i) * std::size_t(n) + std::size_t(j)]; };
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool rotated = false;
    for (int p = 0; p < n; ++p) for (int q = p + 1; q < n; ++q) {
      double pp = 0, qq = 0, pq = 0;
      for (int i = 0; i < m; ++i) {
        pp += at(i, p) * at(i, p);
        qq += at(i, q) * at(i, q);
        pq += at(i, p) * at(i, q);
      }
      if (std::fabs(pq) <= 1e-15 * std::sqrt(pp * qq)) continue;
      rotated = true;
      const double zeta = (qq - pp) / (2 * pq), t = (zeta >= 0 ? 1.0 : -1.0) / (std::fabs(zeta) + std::hypot(1.0, zeta));
      const double c = 1 / std::hypot(1.0, t), s = c * t;
      for (int i = 0; i < m; ++i) {
        const double x = at(i, p), y = at(i, q);
        at(i, p) = c * x - s * y;
        at(i, q) = s * x + c * y;
      }
    }
    if (!rotated) break;
  }
  std::vector<double> s;
  for (int j = 0; j < n; ++j) {
    double sum = 0;
    for (int i = 0; i < m; ++i) sum += at(i, j) * at(i, j);
    s.push_back(std::sqrt(sum));
  }
  std::sort(s.rbegin(), s.rend());
  return s;
}

// exp of the entropy of p_i = s_i^2 / sum s^2: from 1 (one direction) to the number of values (all equal).
inline double effective_rank(std::span<const double> s) {
  double total = 0, entropy = 0;
  for (const double x : s) total += x * x;
  for (const double x : s)
    if (const double p = x * x / total; p > 0) entropy -= p * std::log(p);
  return std::exp(entropy);
}
// sum s^2 / max s^2
inline double stable_rank(std::span<const double> s) {
  double total = 0, largest = 0;
  for (const double x : s) {
    total += x * x;
    largest = std::max(largest, x * x);
  }
  return total / largest;
}

}  // namespace depthbench
