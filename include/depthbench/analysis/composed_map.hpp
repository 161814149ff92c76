// What a design with streams makes of them over depth.   P_k = map_k ... map_0 of a token (n, n), rows are destinations
//   effective rank of P after each sublayer and of each single map: n where streams stay apart, 1 where they have become one
//   overlap: mean |cosine| between the columns of P_{K-1}: 1 where every stream's content ends in the same direction
//   Token means.   cost: one forward pass.                          source: DepthBench, figure 10; the formula of the rank is ours
#pragma once
#include "depthbench/analysis/path_weights.hpp"
#include "depthbench/analysis/singular_values.hpp"

namespace depthbench {

struct ComposedMap {
  int streams = 0;
  Estimates rank_after, single_rank;  // (1, K)
  Estimates product;                  // (n, n) of the whole depth: mean, signed
  Estimates spectrum;                 // (1, n) singular values of the whole product
  Estimate overlap;
};

namespace detail {
inline double column_overlap(const double* p, int n) {
  double sum = 0;
  for (int a = 0; a < n; ++a) for (int b = a + 1; b < n; ++b) {
    double aa = 0, bb = 0, ab = 0;
    for (int i = 0; i < n; ++i) {
      aa += p[i * n + a] * p[i * n + a];
      bb += p[i * n + b] * p[i * n + b];
      ab += p[i * n + a] * p[i * n + b];
    }
    sum += std::fabs(ab) / std::max(std::sqrt(aa * bb), std::numeric_limits<double>::min());
  }
  return n < 2 ? 1 : sum / (n * (n - 1) / 2);
}
}  // namespace detail

// None for designs without streams.
template <class Device, class R>
std::optional<ComposedMap> composed_map(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int K = model.config().sublayers(), T = sample.seq;
  ComposedMap c;
  bool streams = true;
  o.batches(sample, [&](int first, int count) {
    const std::size_t tokens = std::size_t(count) * std::size_t(T);
    std::vector<double> p, next, after(tokens), single(tokens), value(tokens);
    if (!streams) return;
    const bool known = detail::walk_joins(model, tape, sample, first, count, [&](int k, const Join& join) {
      const int n = join.streams;
      streams = streams && n > 1;
      if (!streams) return;
      const std::size_t nn = std::size_t(n * n);
      if (c.streams == 0) c = {n, {1, K}, {1, K}, {n, n}, {1, n}, {}};
      if (p.empty()) {
        p.assign(tokens * nn, 0.0);
        next.resize(p.size());
        for (std::size_t t = 0; t < tokens; ++t) for (int s = 0; s < n; ++s) p[t * nn + std::size_t(s * n + s)] = 1;
      }
      if (k < K) {
        on_host(tape, int(tokens), [&](int row) {
          const std::size_t t = std::size_t(row);
          const double *m = &join.map[t * nn], *x = &p[t * nn];
          for (int a = 0; a < n; ++a) for (int b = 0; b < n; ++b) {
            double s = 0;
            for (int i = 0; i < n; ++i) s += m[a * n + i] * x[i * n + b];
            next[t * nn + std::size_t(a * n + b)] = s;
          }
          after[t] = effective_rank(singular_values({&next[t * nn], &next[t * nn] + nn}, n, n));
          single[t] = effective_rank(singular_values({m, m + nn}, n, n));
        });
        p.swap(next);
        detail::add_windows(c.rank_after(0, k), after, T);
        detail::add_windows(c.single_rank(0, k), single, T);
        return;
      }
      std::vector<double> s(tokens * std::size_t(n));
      for (std::size_t t = 0; t < tokens; ++t) {
        const auto values = singular_values({&p[t * nn], &p[t * nn] + nn}, n, n);
        std::copy(values.begin(), values.end(), &s[t * std::size_t(n)]);
        after[t] = detail::column_overlap(&p[t * nn], n);
      }
      detail::add_windows(c.overlap, after, T);
      const auto add = [&](Estimate& e, const std::vector<double>& from, std::size_t stride, std::size_t at) {
        for (std::size_t t = 0; t < tokens; ++t) value[t] = from[t * stride + at];
        detail::add_windows(e, value, T);
      };
      for (int a = 0; a < n; ++a) {
        add(c.spectrum(0, a), s, std::size_t(n), std::size_t(a));
        for (int b = 0; b < n; ++b) add(c.product(a, b), p, nn, std::size_t(a * n + b));
      }
    });
    streams = streams && known;
    o.report(first + count, sample.windows());
  });
  if (!streams) return std::nullopt;
  return c;
}

}  // namespace depthbench
