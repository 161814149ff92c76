// mHC between plain matrices (chain.hpp), in plain loops.
#pragma once
#include "tests/residual/chain.hpp"

namespace depthbench_test::mhc_loops {

using Row = Chain::Row;

inline std::string connection(int k) { return depthbench::sublayer_name(k) + "_hyper_connection."; }

// H (n, n), rows are destinations: a softmax of every row, then columns, then rows and columns again and again.
inline std::vector<Row> sinkhorn(std::vector<Row> h, int iterations) {
  const std::size_t n = h.size();
  for (auto& row : h) {
    double sum = 0;
    for (double& a : row) sum += a = std::exp(a);
    for (double& a : row) a = a / sum + 1e-6;
  }
  for (int t = 0; t < iterations; ++t) {
    if (t > 0) for (auto& row : h) {
      double sum = 1e-6;
      for (const double a : row) sum += a;
      for (double& a : row) a /= sum;
    }
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 1e-6;
      for (std::size_t o = 0; o < n; ++o) sum += h[o][i];
      for (std::size_t o = 0; o < n; ++o) h[o][i] /= sum;
    }
  }
  return h;
}
struct Coefficients {
  Row pre, post;
  std::vector<Row> res;
};
inline Coefficients coefficients(Chain& c, const std::vector<Row>& x, int k, int iterations) {
  const int n = int(x.size()), count = n * n + 2 * n;
  const auto p = [&](const char* name) { return c.at(connection(k) + name); };
  double square = 0;
  for (const auto& s : x) for (const double a : s) square += a * a;
  const double rms = std::sqrt(square / (n * c.d) + 1e-6);
  Row m(std::size_t(count), 0);
  for (int s = 0; s < n; ++s) for (int i = 0; i < c.d; ++i) for (int j = 0; j < count; ++j)
    m[std::size_t(j)] += x[std::size_t(s)][std::size_t(i)] / rms * p("phi")[(s * c.d + i) * count + j];
  Coefficients h;
  for (int s = 0; s < n; ++s) {
    h.pre.push_back(1 / (1 + std::exp(-*p("alpha_pre") * m[std::size_t(s)] - p("b")[s])));
    h.post.push_back(2 / (1 + std::exp(-*p("alpha_post") * m[std::size_t(n + s)] - p("b")[n + s])));
    h.res.emplace_back();
    for (int i = 0; i < n; ++i) h.res.back().push_back(*p("alpha_res") * m[std::size_t(2 * n + s * n + i)] + p("b")[2 * n + s * n + i]);
  }
  h.res = sinkhorn(h.res, iterations);
  return h;
}
// Streams of one token through all sublayers; states are appended.
inline std::vector<Row> formula(Chain& c, int n, int iterations, int t, std::vector<std::vector<double>>& states) {
  std::vector<Row> x(std::size_t(n), c.token(c.x(), t));
  const auto keep = [&](int l) { for (const auto& s : x) states[std::size_t(l)].insert(states[std::size_t(l)].end(), s.begin(), s.end()); };
  for (int k = 0; k < c.sublayers; ++k) {
    if (k % 2 == 0) keep(k / 2);
    const auto h = coefficients(c, x, k, iterations);
    Row u(std::size_t(c.d), 0);
    for (int s = 0; s < n; ++s) for (int i = 0; i < c.d; ++i) u[std::size_t(i)] += h.pre[std::size_t(s)] * x[std::size_t(s)][std::size_t(i)];
    const Row y = c.times_branch(k, c.norm(u, c.at(c.gain_name(k)), c.norm_eps));
    std::vector<Row> next;
    for (int o = 0; o < n; ++o) {
      next.push_back(y);
      for (double& a : next.back()) a *= h.post[std::size_t(o)];
      for (int s = 0; s < n; ++s) for (int i = 0; i < c.d; ++i)
        next.back()[std::size_t(i)] += h.res[std::size_t(o)][std::size_t(s)] * x[std::size_t(s)][std::size_t(i)];
    }
    x = next;
  }
  keep(c.sublayers / 2);
  return x;
}

}  // namespace depthbench_test::mhc_loops
