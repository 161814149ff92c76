// The text that an analysis looks at: windows of T tokens, with their labels.
#pragma once
#include <functional>
#include <span>

#include "depthbench/core/rng.hpp"
#include "depthbench/data/sampler.hpp"
#include "depthbench/residual/interventions.hpp"

namespace depthbench {

struct Sample {
  int seq = 0;                                // T
  std::vector<std::int32_t> tokens, targets;  // (windows, T)   ignored_target = no label

  int windows() const { return seq == 0 ? 0 : int(tokens.size()) / seq; }
  std::span<const std::int32_t> tokens_of(int first, int count) const { return part(tokens, first, count); }
  std::span<const std::int32_t> targets_of(int first, int count) const { return part(targets, first, count); }

 private:
  std::span<const std::int32_t> part(const std::vector<std::int32_t>& v, int first, int count) const {
    return std::span(v).subspan(std::size_t(first) * std::size_t(seq), std::size_t(count) * std::size_t(seq));
  }
};

// Every position but the last of a window is labelled with the next token: the convention of the published numbers.
inline Sample next_token_sample(std::vector<std::int32_t> tokens, int seq) {
  if (seq < 2 || tokens.empty() || tokens.size() % std::size_t(seq) != 0)
    fail<shape_error>("sample: {} tokens do not make windows of {}, needs a whole number of windows of 2 or more", tokens.size(), seq);
  Sample s{seq, std::move(tokens), {}};
  s.targets.assign(s.tokens.size(), ignored_target);
  for (std::size_t i = 0; i + 1 < s.tokens.size(); ++i)
    if ((i + 1) % std::size_t(seq) != 0) s.targets[i] = s.tokens[i + 1];
  return s;
}

// `count` windows of `seq` tokens, each at a place drawn uniformly from the ranges (joined), with replacement.
//   throws config_error if the ranges hold fewer than seq tokens
inline Sample draw_sample(const Corpus& corpus, std::span<const TokenRange> ranges, int count, int seq, std::uint64_t seed) {
  const TokenStream stream(corpus, ranges);
  if (count < 1) fail<config_error>("sample: {} windows, needs 1 or more", count);
  if (stream.size() < std::uint64_t(seq))
    fail<config_error>("sample: windows of {} tokens are asked for, the text has {}", seq, stream.size());
  constexpr std::uint64_t purpose = 0x70726f62;  // "prob"
  const Rng rng = Rng(seed).split(purpose);
  std::vector<std::int32_t> tokens(std::size_t(count) * std::size_t(seq));
  for (int i = 0; i < count; ++i)
    stream.copy(rng.below(std::uint64_t(i), stream.size() - std::uint64_t(seq) + 1),
                std::span(tokens).subspan(std::size_t(i) * std::size_t(seq), std::size_t(seq)));
  return next_token_sample(std::move(tokens), seq);
}

// How an analysis is carried out.
struct AnalysisOptions {
  int rows = 4;                                                 // windows of one forward pass
  FirstRun first_run = FirstRun::nothing;                       // AttnRes without block 0
  std::function<void(std::int64_t, std::int64_t)> progress;     // (passes done, of); may throw to stop

  // f(first, count) over batches of windows
  template <class F> void batches(const Sample& s, const F& f) const {
    for (int first = 0; first < s.windows(); first += rows) f(first, std::min(rows, s.windows() - first));
  }
  std::int64_t batch_count(const Sample& s) const { return (std::int64_t(s.windows()) + rows - 1) / rows; }
  void report(std::int64_t done, std::int64_t of) const { if (progress) progress(done, of); }
};

}  // namespace depthbench
