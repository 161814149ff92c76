// Training batches: the stream is cut into windows of T tokens (a remainder is dropped), and each epoch takes
// every window once, in an order drawn from (seed, epoch).
//   Windows ignore document borders; the last position of a window has no label, so T tokens give T - 1
//   labels (spec of the released DepthBench recipe: OLMo-core's packed fixed-length instances).
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/core/rng.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/token_stream.hpp"
#include "depthbench/data/tokens.hpp"

namespace depthbench {

// The place in the data is one number, the cursor: instances taken since the start. A batch is a pure
// function of (stream, T, seed, cursor); to resume a run, keep the cursor. The corpus must outlive the
// sampler.
//   throws config_error: T < 2, or the stream is shorter than one window
class WindowSampler {
 public:
  WindowSampler(TokenStream stream, std::int64_t window, std::uint64_t seed)
      : stream_(std::move(stream)), window_(std::uint64_t(window)), seed_(seed) {
    if (window < 2) fail<config_error>("sampler: a window has {} tokens, needs at least 2", window);
    if (stream_.size() < window_)
      fail<config_error>("sampler: has {} tokens to train on, needs at least {} (one window)", stream_.size(),
                         window_);
  }
  WindowSampler(const Corpus& corpus, std::span<const TokenRange> ranges, std::int64_t window,
                std::uint64_t seed)
      : WindowSampler(TokenStream(corpus, ranges), window, seed) {}
  WindowSampler(Corpus&&, std::span<const TokenRange>, std::int64_t, std::uint64_t) = delete;

  std::uint64_t instances() const { return stream_.size() / window_; }  // in one epoch
  std::uint64_t epoch(std::uint64_t cursor) const { return cursor / instances(); }
  std::int64_t window() const { return std::int64_t(window_); }

  // Which window is instance number `cursor`. Not const: the order of the last epoch asked for is kept.
  std::uint64_t window_at(std::uint64_t cursor) {
    const std::uint64_t n = instances(), e = epoch(cursor);
    if (order_.empty() || order_epoch_ != e) {
      constexpr std::uint64_t purpose = 0x77696e64;  // "wind"
      order_ = shuffled(n, Rng(seed_).split(purpose).split(e));
      order_epoch_ = e;
    }
    return order_[cursor % n];
  }

  // Instances cursor .. cursor + batch_size - 1; the next cursor is cursor + batch_size.
  //   tokens (batch_size, T)   targets (batch_size, T): the next token, ignored_target at the end of each
  //   window
  void batch(std::uint64_t cursor, std::int64_t batch_size, std::span<std::int32_t> tokens,
             std::span<std::int32_t> targets) {
    if (batch_size < 1 || tokens.size() / window_ != std::uint64_t(batch_size) ||
        tokens.size() % window_ != 0 || targets.size() != tokens.size())
      fail<shape_error>("sampler: tokens and targets have {} and {} elements, need {} x {} each",
                        tokens.size(), targets.size(), batch_size, window_);
    for (std::uint64_t b = 0; b < std::uint64_t(batch_size); ++b) {
      const auto in = tokens.subspan(b * window_, window_), next = targets.subspan(b * window_, window_);
      stream_.copy(window_at(cursor + b) * window_, in);
      for (std::size_t t = 0; t + 1 < window_; ++t) next[t] = in[t + 1];
      next[window_ - 1] = ignored_target;
    }
  }

 private:
  TokenStream stream_;
  std::uint64_t window_, seed_;
  std::vector<std::uint64_t> order_;
  std::uint64_t order_epoch_ = 0;
};

}  // namespace depthbench
