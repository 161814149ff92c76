// The yardstick of a demo: a model that has learned anything about order must beat the unigram entropy.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/token_stream.hpp"
#include "depthbench/data/tokens.hpp"

namespace depthbench {

// H = -sum_v p_v ln p_v in nats, p_v = share of id v among the tokens: the loss of the best predictor that
// knows the frequencies of these tokens and nothing else.
//   throws config_error if there are no tokens
inline double unigram_entropy(const Corpus& corpus, std::span<const TokenRange> ranges) {
  const TokenStream stream(corpus, ranges);
  if (stream.size() == 0) fail<config_error>("unigram_entropy: has no tokens");
  std::unordered_map<std::int32_t, std::uint64_t> count;  // not a table of vocab_size: that is only a claim
  std::vector<std::int32_t> chunk;
  for (std::uint64_t at = 0; at < stream.size(); at += chunk.size()) {
    chunk.resize(std::size_t(std::min<std::uint64_t>(1 << 16, stream.size() - at)));
    stream.copy(at, chunk);
    for (const std::int32_t id : chunk) ++count[id];
  }
  std::vector<std::uint64_t> counts;
  for (const auto& [id, n] : count) counts.push_back(n);
  std::sort(counts.begin(), counts.end());  // one order of summation, whatever the map's
  double entropy = 0;
  for (const std::uint64_t n : counts) {
    const double p = double(n) / double(stream.size());
    entropy -= p * std::log(p);
  }
  return entropy;
}
// Of the whole corpus.
inline double unigram_entropy(const Corpus& corpus) {
  const TokenRange all{0, corpus.size()};
  return unigram_entropy(corpus, {&all, 1});
}

}  // namespace depthbench
