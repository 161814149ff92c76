// Whether a block does more than an affine map could.
//   A, b minimise sum over tokens |A z_l + b - z_{l+1}|^2;  ratio = loss with block l replaced by them / loss.   useful: ratio > 1.1
//   None for designs whose state does not determine the carry (AttnRes).
//   cost: (L + 1) / 2 forward passes and L least-squares problems of N x (width + 1).   source: DepthBench, compute_usefulness_score
#pragma once
#include "depthbench/analysis/lapack.hpp"
#include "depthbench/analysis/window_loss.hpp"

namespace depthbench {

struct Usefulness {
  WindowLoss base;
  std::vector<WindowLoss> replaced;  // one a block
  double ratio(int l) const { return replaced[std::size_t(l)].mean() / base.mean(); }
  double useful_share(double threshold = 1.1) const {
    int n = 0;
    for (int l = 0; l < int(replaced.size()); ++l) n += ratio(l) > threshold;
    return double(n) / double(replaced.size());
  }
};

namespace detail {
// The affine map z -> next fitted on all rows: (width + 1, width), the last row is b; column-major.
template <class R> std::vector<double> fit_affine(const HostState<R>& z, const HostState<R>& next) {
  const int n = int(z.rows()), width = int(z.width);
  std::vector<double> a(std::size_t(n) * std::size_t(width + 1), 1.0), b(std::size_t(n) * std::size_t(width));
  for (int t = 0; t < n; ++t) for (int i = 0; i < width; ++i) {
    a[std::size_t(i) * std::size_t(n) + std::size_t(t)] = double(z.row(std::size_t(t))[i]);
    b[std::size_t(i) * std::size_t(n) + std::size_t(t)] = double(next.row(std::size_t(t))[i]);
  }
  return lapack::least_squares(std::move(a), std::move(b), n, width + 1, width);
}
}  // namespace detail

template <class Device, class R>
std::optional<Usefulness> usefulness(Transformer<Device, R>& model, Tape<Device, R>& tape, const Sample& sample, const AnalysisOptions& o = {}) {
  const int L = model.config().n_layers;
  Usefulness u;
  std::vector<HostState<R>> z(std::size_t(L) + 1);  // of the whole sample: the fit sees all tokens
  o.batches(sample, [&](int first, int count) {
    without_trace(tape, [&] {
      auto pass = model.begin(tape, sample.tokens_of(first, count), count);
      for (int l = 0; l <= L; ++l) {
        const auto here = host_state(pass.state());
        auto& all = z[std::size_t(l)];
        all.width = here.width;
        all.x.insert(all.x.end(), here.x.begin(), here.x.end());
        if (l < L) pass.step();
      }
      u.base.append(window_loss(model, pass.finish(), sample, first, count));
    });
    tape.clear();
  });
  bool possible = true;
  for (int l = 0; l < L && possible; ++l) {
    const auto map = detail::fit_affine(z[std::size_t(l)], z[std::size_t(l) + 1]);
    const std::size_t width = z[0].width, rows = width + 1;
    WindowLoss loss;
    o.batches(sample, [&](int first, int count) {
      const std::size_t n = std::size_t(count) * std::size_t(sample.seq), begin = std::size_t(first) * std::size_t(sample.seq);
      std::vector<R> made(n * width);
      on_host(tape, int(n), [&](int t) {
        const R* x = z[std::size_t(l)].row(begin + std::size_t(t));
        for (std::size_t c = 0; c < width; ++c) {
          double s = map[c * rows + width];
          for (std::size_t i = 0; i < width; ++i) s += map[c * rows + i] * double(x[i]);
          made[std::size_t(t) * width + c] = R(s);
        }
      });
      without_trace(tape, [&] {
        auto pass = model.begin(tape, sample.tokens_of(first, count), count);
        while (pass.block() < l) pass.step();
        pass.skip(o.first_run);
        if (!(possible = possible && pass.replace(tape.constant(made.data(), {std::int64_t(n), std::int64_t(width)})))) return;
        while (!pass.done()) pass.step();
        loss.append(window_loss(model, pass.finish(), sample, first, count));
      });
      tape.clear();
    });
    u.replaced.push_back(std::move(loss));
    o.report(l + 1, L);
  }
  if (!possible) return std::nullopt;
  return u;
}

}  // namespace depthbench
