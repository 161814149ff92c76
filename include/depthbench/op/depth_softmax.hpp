// Attention over depth on the tape: a bank of sources that later mixers read.
//   bank.publish(v, id, first, last)   makes v (N, d) a source for the mixers first..last
//   bank.read(sources, l)              o = sum_s softmax_s(<w_l g_l, v_s> / rms(v_s)) v_s                -> (N, d)
// Sources are referenced, never copied or concatenated. A read saves N numbers, a source N numbers for each later mixer.
// The gradient of a source is gathered in one pass when the backward pass reaches publish (kernel/depth_softmax.hpp).
#pragma once
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "depthbench/core/profile.hpp"
#include "depthbench/backend/gemm.hpp"
#include "depthbench/kernel/depth_softmax.hpp"
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

// keys (M, d) = the products w_l * g_l of the M mixers' queries and gains, one row a mixer.
template <class Device, class R>
Var<Device, R> mixer_keys(std::vector<Var<Device, R>> w, std::vector<Var<Device, R>> g) {
  auto& tape = *w.at(0).tape;
  const std::int64_t d = w[0].numel(), m = std::int64_t(w.size());
  auto keys = tape.make({m, d});
  for (std::int64_t l = 0; l < m; ++l)
    tape.device().template for_packs<R>(std::size_t(d), Product<R>{w[l].value(), g[l].value(), keys.out() + l * d, false});
  tape.record(1, [&tape, w, g, keys, d, m] {
    const R* dk = tape.grad(keys);
    for (std::int64_t l = 0; l < m; ++l) {
      const auto dw = tape.accumulate_always(w[l]), dg = tape.accumulate_always(g[l]);
      tape.device().template for_packs<R>(std::size_t(d), Product<R>{dk + l * d, g[l].value(), dw.g, dw.add});
      tape.device().template for_packs<R>(std::size_t(d), Product<R>{dk + l * d, w[l].value(), dg.g, dg.add});
    }
  });
  return keys;
}

template <class Device, class R> class DepthBank {
 public:
  using Variable = Var<Device, R>;
  struct Source {
    Variable v;      // (N, d)
    Variable r;      // (N)                   1 / rms
    Variable logit;  // (last - first + 1, N)  <w_l g_l, v>
    int id, first, last;
    const R* logits_of(int mixer) const { return logit.value() + std::int64_t(mixer - first) * r.numel(); }
  };

  // keys (M, d): mixer l is row l.
  DepthBank(Variable keys, double eps) : keys_(keys), eps_(eps), state_(std::make_shared<State>()) {
    state_->readers.resize(std::size_t(keys.rows()));
    keys.tape->keep(state_);
  }

  // id: 0, 1, 2, ... in the order of creation; a second run of the same code (recomputation) uses the same ids.
  Source publish(Variable v, int id, int first, int last) const {
    auto& tape = *v.tape;
    const std::int64_t n = v.rows(), d = v.cols(), m = last - first + 1;
    if (d != keys_.cols()) fail<shape_error>("depth bank: the source has shape {}, needs (N, {})", v.shape().text(), keys_.cols());
    if (state_->tokens < 0) state_->tokens = n;  // of the first source, and so of all
    check_shape("depth bank", "the source", v.shape(), {state_->tokens, d});
    if (first < 0 || m < 1 || last >= keys_.rows())
      fail<shape_error>("depth bank: mixers {} to {} of {} do not exist", first, last, keys_.rows());
    Source s{v, tape.make({n}), tape.make({m, n}), id, first, last};
    state_->published.insert_or_assign(v.id, s);
    {
      const auto norm = tape.device().profile().within(Part::norm);
      const auto timing = tape.device().timed(Section::rows, 2.0 * n * d, 1.0 * n * d * sizeof(R));
      tape.device().template for_tiles<R>(int(n), depth_tile, int(d), DepthInverseRms<R>{v.value(), s.r.out(), R(eps_)});
    }
    tape.device().gemm(GemmArgs<R>{Op::None, Op::Transpose, m, n, d, keys_.value() + first * d, d, v.value(), d}, R(0), s.logit.out(), n, Products::fp32);
    tape.record(2, [&tape, s, keys = keys_, state = state_.get()] { pull(tape, s, keys, *state); }, Tape<Device, R>::Pull::yes);
    return s;
  }

  // The source that v was published as.
  const Source& source(Variable v) const {
    const auto it = state_->published.find(v.id);
    if (it == state_->published.end()) fail<tape_error>("depth bank: a value of shape {} was never published", v.shape().text());
    return it->second;
  }

  // The same bank, whose mixer l is to be passed over.
  DepthBank bypassing(int mixer) const {
    DepthBank other = *this;
    other.bypassed_ = mixer;
    return other;
  }
  bool bypassed(int mixer) const { return mixer == bypassed_; }

  // probabilities, if not null, receives the softmax weights (sources, N).
  Variable read(std::span<const Source> sources, int mixer, R* probabilities = nullptr) const {
    if (sources.empty()) fail<shape_error>("depth bank: mixer {} has no sources", mixer);
    auto& tape = *sources[0].v.tape;
    const std::int64_t n = sources[0].v.rows(), d = sources[0].v.cols();
    const int m = int(sources.size());
    std::vector<DepthSource<R>> list;
    for (const Source& s : sources) {
      if (mixer < s.first || mixer > s.last)
        fail<shape_error>("depth bank: source {} was published for the mixers {} to {}, not for {}", s.id, s.first, s.last, mixer);
      list.push_back({s.v.value(), s.r.value(), s.logits_of(mixer)});
    }
    auto& device = tape.device();
    const auto p = tape.shared_buffer(std::size_t(m * n)), lse = tape.shared_buffer(std::size_t(n));
    auto o = tape.make({n, d});
    const auto staged = device.stage(std::span<const DepthSource<R>>(list));
    device.template for_packs<R>(std::size_t(n), DepthProbabilities<R>{staged.data(), m, n, p.get(), lse.get()});
    {
      const auto timing = device.timed(Section::rows, 2.0 * m * n * d, double(m + 1) * n * d * sizeof(R));
      device.template for_tiles<R>(int(n), depth_tile, int(d), DepthMix<R>{staged.data(), m, p.get(), n, o.out()});
    }
    if (probabilities) device.download(probabilities, p.get(), std::size_t(m * n));
    std::vector<int> ids;
    for (const Source& s : sources) ids.push_back(s.id);
    tape.record(1, [&tape, o, lse, ids, mixer, n, d, state = state_.get()] {
      const auto dots = tape.shared_buffer(std::size_t(n));
      const auto go = tape.adopt_grad(o);
      const auto timing = tape.device().timed(Section::rows, 2.0 * n * d, 2.0 * n * d * sizeof(R));
      tape.device().template for_tiles<R>(int(n), depth_tile, int(d), DepthRowDots<R>{go.get(), o.value(), dots.get()});
      state->readers[std::size_t(mixer)] = {go, lse, dots};
      for (const int id : ids) state->consumers(id).push_back(mixer);
    });
    return o;
  }

 private:
  using Shared = std::shared_ptr<R>;
  struct Reader {
    Shared go, lse, dots;  // released when the last of its sources has pulled
  };
  struct State {
    std::unordered_map<int, Source> published; // by the value's place on the tape
    std::int64_t tokens = -1;                // N; no source yet
    std::vector<Reader> readers;             // by mixer
    std::vector<std::vector<int>> by_source; // mixers that have a gradient for the source
    std::vector<int>& consumers(int id) {
      if (by_source.size() <= std::size_t(id)) by_source.resize(std::size_t(id) + 1);
      return by_source[std::size_t(id)];
    }
    bool wanted(int mixer) const {
      for (const auto& list : by_source) for (const int l : list) if (l == mixer) return true;
      return false;
    }
  };

  static void pull(Tape<Device, R>& tape, const Source& s, Variable keys, State& state) {
    std::vector<int> mixers = std::exchange(state.consumers(s.id), {});
    if (mixers.empty()) return;
    std::sort(mixers.begin(), mixers.end());
    const std::int64_t n = s.v.rows(), d = s.v.cols();
    const int m = int(mixers.size());
    std::vector<DepthUse<R>> uses;
    for (const int l : mixers) {
      const Reader& reader = state.readers[std::size_t(l)];
      uses.push_back({reader.go.get(), reader.lse.get(), reader.dots.get(), s.logits_of(l)});
    }
    auto& device = tape.device();
    const auto g = tape.shared_buffer(std::size_t(m * n));
    const auto dv = tape.accumulate_always(s.v);
    const auto staged = device.stage(std::span<const DepthUse<R>>(uses));
    device.template for_packs<R>(std::size_t(n), DepthPullProbabilities<R>{staged.data(), s.r.value(), m, n, g.get()});
    {
      const auto timing = device.timed(Section::rows, 4.0 * m * n * d, double(m + 2 + dv.add) * n * d * sizeof(R));
      const DepthPull<R> body{s.v.value(), s.r.value(), staged.data(), m, g.get(), n, dv.g, dv.add};
      device.template for_tiles<R>(int(n), depth_tile, int(d), body);
    }
    R* dk = tape.sum_of_grads_always(keys);
    // Consumers are consecutive mixers save where a block was skipped: one product for each run of them.
    for (int first = 0; first < m;) {
      int count = 1;
      while (first + count < m && mixers[std::size_t(first + count)] == mixers[std::size_t(first)] + count) ++count;
      const std::int64_t row = std::int64_t(mixers[std::size_t(first)]) * d;
      const R* gs = g.get() + first * n;
      device.gemm(GemmArgs<R>{Op::Transpose, Op::None, n, d, count, gs, n, keys.value() + row, d}, R(1), dv.g, d, Products::fp32);
      device.gemm(GemmArgs<R>{Op::None, Op::None, count, d, n, gs, n, s.v.value(), d}, R(1), dk + row, d, Products::fp32);
      first += count;
    }
    for (const int l : mixers) if (!state.wanted(l)) state.readers[std::size_t(l)] = {};
  }

  Variable keys_;
  double eps_;
  int bypassed_ = -1;
  std::shared_ptr<State> state_;
};

}  // namespace depthbench
