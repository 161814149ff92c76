// Ranges of a corpus laid end to end, so that a window may cross from one into the next.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/tokens.hpp"

namespace depthbench {

// The corpus must outlive the stream.
//   throws config_error if a range leaves the corpus
class TokenStream {
 public:
  TokenStream(const Corpus& corpus, std::span<const TokenRange> ranges) : corpus_(&corpus) {
    for (const TokenRange range : ranges) {
      if (range.begin > range.end || range.end > corpus.size())
        fail<config_error>("TokenStream: range [{}, {}) leaves the corpus of {} tokens", range.begin,
                           range.end, corpus.size());
      if (range.begin == range.end) continue;
      if (!ranges_.empty() && ranges_.back().end == range.begin) {  // neighbours are one range
        ranges_.back().end = range.end;
      } else {
        ranges_.push_back(range);
        starts_.push_back(size_);
      }
      size_ += range.size();
    }
  }
  TokenStream(Corpus&&, std::span<const TokenRange>) = delete;

  std::uint64_t size() const { return size_; }
  const Corpus& corpus() const { return *corpus_; }

  // Tokens begin, begin + 1, ... of the stream fill out.
  void copy(std::uint64_t begin, std::span<std::int32_t> out) const {
    if (begin > size_ || out.size() > size_ - begin)
      fail<config_error>("TokenStream: {} tokens from {} are asked for, has {}", out.size(), begin, size_);
    auto r = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), begin) - starts_.begin());
    for (--r; !out.empty(); ++r) {
      const std::uint64_t from = ranges_[r].begin + (begin - starts_[r]);
      const std::size_t n = std::size_t(std::min<std::uint64_t>(out.size(), ranges_[r].end - from));
      corpus_->copy({from, from + n}, out.first(n));
      out = out.subspan(n);
      begin += n;
    }
  }

 private:
  const Corpus* corpus_;
  std::vector<TokenRange> ranges_;
  std::vector<std::uint64_t> starts_;  // of each range in the stream
  std::uint64_t size_ = 0;
};

}  // namespace depthbench
