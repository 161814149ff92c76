// With which weight each sublayer's output reaches the inputs of the later ones.
//
//   w(i, l): row 0 the embedding, row i + 1 the output of sublayer i; column l the input of sublayer l before its norm, column
//   K the read-out. Signed; token means of products that are formed token by token. sum_i w(i, l) f_i is that input exactly.
//     streams   read_l . map_{l-1} ... map_{i+1} . write_i        (embedding: ... map_0 . ones)
//     mixtures  the softmax weight of the source that contains the output
//     one stream with plain addition: 1.   None where a norm rescales the stream (DeepNorm, KEEL).
//   depth_mixing: the same weights source by source, one row a mixer.
//   cost: one forward pass, and K^2 n^2 operations a token.
#pragma once
#include "depthbench/analysis/estimate.hpp"
#include "depthbench/analysis/states.hpp"

namespace depthbench {

struct MixerWeights {          // of one mixer
  int sublayer;            // the one it feeds; K: the read-out
  struct Source { int first, last; Estimate weight; };  // outputs first .. last, 0 the embedding
  std::vector<Source> sources;
};
struct PathWeights {
  Estimates weights;                // (K + 1, K + 1)
  std::vector<MixerWeights> mixing;     // of designs with mixers
};

namespace detail {

// Mean over each window of n token values -> one value a window.
inline void add_windows(Estimate& e, std::span<const double> values, int T) {
  for (std::size_t first = 0; first < values.size(); first += std::size_t(T)) {
    double sum = 0;
    for (int t = 0; t < T; ++t) sum += values[first + std::size_t(t)];
    e.add(sum / T);
  }
}

// Walks the sublayers of a batch: visit(k, join) for k = 0 .. K.   -> false if the design has no weights
template <class Device, class R, class F>
bool walk_joins(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, int first, int count, const F& visit) {
  bool known = true;
  without_trace(tape, [&] {
    auto pass = model.begin(tape, sample.tokens_of(first, count), count);
    for (int k = 0;; ++k) {
      const auto join = pass.join();
      if (!(known = join.has_value())) return;
      visit(k, *join);
      if (pass.done()) return;
      pass.write(pass.branch());
    }
  });
  tape.clear();
  return known;
}

// A token's composed weights: X = sum_i w_i f_i, w (n) for every output i so far.
struct StreamWeights {
  int n;
  std::vector<double> w, scratch;  // (outputs, n)
  explicit StreamWeights(int streams) : n(streams), w(std::size_t(streams), 1.0), scratch(std::size_t(streams)) {}
  int outputs() const { return int(w.size()) / n; }
  double read(const double* r, int i) const {
    double s = 0;
    for (int c = 0; c < n; ++c) s += r[c] * w[std::size_t(i * n + c)];
    return s;
  }
  void write(const double* map, const double* out) {
    for (int i = 0; i < outputs(); ++i) {
      double* x = &w[std::size_t(i * n)];
      for (int o = 0; o < n; ++o) {
        scratch[std::size_t(o)] = 0;
        for (int c = 0; c < n; ++c) scratch[std::size_t(o)] += map[o * n + c] * x[c];
      }
      std::copy(scratch.begin(), scratch.end(), x);
    }
    w.insert(w.end(), out, out + n);
  }
};

}  // namespace detail

template <class Device, class R>
std::optional<PathWeights> path_weights(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int K = model.config().sublayers(), T = sample.seq;
  PathWeights p{Estimates(K + 1, K + 1), {}};
  bool known = true;
  o.batches(sample, [&](int first, int count) {
    const std::size_t tokens = std::size_t(count) * std::size_t(T);
    std::vector<detail::StreamWeights> at;
    std::vector<double> value(tokens);
    known = known && detail::walk_joins(model, tape, sample, first, count, [&](int k, const Join& join) {
      if (join.streams == 0) {
        auto& mix = std::size_t(k) < p.mixing.size() ? p.mixing[std::size_t(k)] : p.mixing.emplace_back(MixerWeights{k, {}});
        for (std::size_t s = 0; s < join.sources.size(); ++s) {
          const auto& source = join.sources[s];
          for (int i = source.first; i <= source.last; ++i) detail::add_windows(p.weights(i, k), source.weight, T);
          if (mix.sources.size() <= s) mix.sources.push_back({source.first, source.last, {}});
          detail::add_windows(mix.sources[s].weight, source.weight, T);
        }
        return;
      }
      const std::size_t n = std::size_t(join.streams);
      if (at.empty()) at.assign(tokens, detail::StreamWeights(join.streams));
      for (int i = 0; i <= k; ++i) {
        for (std::size_t t = 0; t < tokens; ++t) value[t] = at[t].read(&join.read[t * n], i);
        detail::add_windows(p.weights(i, k), value, T);
      }
      if (k < K) on_host(tape, int(tokens), [&](int t) { at[std::size_t(t)].write(&join.map[std::size_t(t) * n * n], &join.write[std::size_t(t) * n]); });
    });
    o.report(first + count, sample.windows());
  });
  if (!known) return std::nullopt;
  if (!p.mixing.empty()) p.mixing.erase(p.mixing.begin());  // sublayer 0 has no mixer
  return p;
}

}  // namespace depthbench
