// Held-out loss, two protocols over the same batches of (tokens, targets):
//
//   packed_validation    the ranges end to end, cut into windows of T tokens; the last one padded
//   document_validation  one instance a document: its first min(length, T) tokens, padded on the right
//
// In both, a target is the next token of the same instance; the last token of an instance and all padding
// have ignored_target. Padding stands to the right of a causal model's tokens and cannot reach their losses.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/token_stream.hpp"
#include "depthbench/data/tokens.hpp"

namespace depthbench {

struct ValidationBatch {
  std::int64_t rows = 0;              // instances; the last batch may have fewer
  std::int64_t window = 0;            // T
  std::vector<std::int32_t> tokens;   // (rows, T)
  std::vector<std::int32_t> targets;  // (rows, T)
  std::uint64_t labels = 0;           // targets that are not ignored: one less than tokens, per instance
  std::uint64_t real_tokens = 0;      // tokens that are not padding
};

// Collects summed losses and says both means.
struct ValidationLoss {
  double sum_nll = 0;  // nats
  std::uint64_t labels = 0, real_tokens = 0;

  void add(const ValidationBatch& batch, double batch_sum_nll) {
    sum_nll += batch_sum_nll;
    labels += batch.labels;
    real_tokens += batch.real_tokens;
  }
  // Per prediction: the number to compare with an entropy.
  double mean() const { return sum_nll / double(labels); }
  // As the released DepthBench reports it: an instance of m tokens adds m to the denominator but only m - 1
  // losses, so this lies below mean(). Only for comparison with its numbers, under document_validation.
  double published() const { return sum_nll / double(real_tokens); }
};

// for (const ValidationBatch& b : set.batches(8)) loss.add(b, ...);     the corpus must outlive the set
class ValidationSet {
 public:
  ValidationSet(TokenStream stream, std::vector<TokenRange> instances, std::int64_t window)
      : stream_(std::move(stream)), instances_(std::move(instances)), window_(window) {
    for (const TokenRange i : instances_) {
      if (i.size() < 1 || i.size() > std::uint64_t(window))
        fail<config_error>("validation: an instance has {} tokens, needs 1 to {}", i.size(), window);
      real_tokens_ += i.size();
    }
    if (labels() == 0)
      fail<config_error>("validation: has {} tokens and no label, needs 2 in a row", real_tokens_);
  }

  std::uint64_t instances() const { return instances_.size(); }
  std::uint64_t labels() const { return real_tokens_ - instances_.size(); }
  std::uint64_t real_tokens() const { return real_tokens_; }
  std::int64_t window() const { return window_; }

  // Instances first .. first + rows - 1, fewer at the end.
  ValidationBatch batch(std::uint64_t first, std::int64_t rows) const {
    if (rows < 1 || first >= instances_.size())
      fail<config_error>("validation: {} instances from {} are asked for, has {}", rows, first,
                         instances_.size());
    ValidationBatch out;
    out.rows = std::int64_t(std::min<std::uint64_t>(std::uint64_t(rows), instances_.size() - first));
    out.window = window_;
    const std::size_t T = std::size_t(window_);
    out.tokens.assign(std::size_t(out.rows) * T,
                      stream_.corpus().eod().value_or(0));  // any id does as padding
    out.targets.assign(std::size_t(out.rows) * T, ignored_target);
    for (std::size_t row = 0; row < std::size_t(out.rows); ++row) {
      const TokenRange instance = instances_[first + row];
      const auto in = std::span(out.tokens).subspan(row * T, std::size_t(instance.size()));
      stream_.copy(instance.begin, in);
      std::copy(in.begin() + 1, in.end(), out.targets.begin() + std::ptrdiff_t(row * T));
      out.labels += in.size() - 1;
      out.real_tokens += in.size();
    }
    return out;
  }

  // All batches in order; each is made when it is dereferenced.
  class Batches {
   public:
    class iterator {
     public:
      using value_type = ValidationBatch;
      using difference_type = std::ptrdiff_t;
      iterator() = default;
      iterator(const ValidationSet* set, std::int64_t rows) : set_(set), rows_(rows) {}
      ValidationBatch operator*() const { return set_->batch(first_, rows_); }
      iterator& operator++() {
        first_ += std::uint64_t(rows_);
        return *this;
      }
      void operator++(int) { ++*this; }
      bool operator==(std::default_sentinel_t) const { return first_ >= set_->instances(); }

     private:
      const ValidationSet* set_ = nullptr;
      std::int64_t rows_ = 0;
      std::uint64_t first_ = 0;
    };
    Batches(const ValidationSet& set, std::int64_t rows) : set_(&set), rows_(rows) {}
    iterator begin() const { return {set_, rows_}; }
    std::default_sentinel_t end() const { return {}; }

   private:
    const ValidationSet* set_;
    std::int64_t rows_;
  };
  Batches batches(std::int64_t rows) const {
    if (rows < 1) fail<config_error>("validation: a batch has {} rows, needs at least 1", rows);
    return {*this, rows};
  }

 private:
  TokenStream stream_;
  std::vector<TokenRange> instances_;  // in the stream's count
  std::int64_t window_;
  std::uint64_t real_tokens_ = 0;
};

// A last window of one token has nothing to predict and is left out.
//   throws config_error: T < 2, fewer than 2 tokens
inline ValidationSet packed_validation(const Corpus& corpus, std::span<const TokenRange> ranges,
                                       std::int64_t window) {
  if (window < 2) fail<config_error>("validation: a window has {} tokens, needs at least 2", window);
  TokenStream stream(corpus, ranges);
  std::vector<TokenRange> instances;
  const std::uint64_t T = std::uint64_t(window);
  for (std::uint64_t at = 0; at + 1 < stream.size(); at += T)
    instances.push_back({at, std::min(at + T, stream.size())});
  return {std::move(stream), std::move(instances), window};
}
ValidationSet packed_validation(Corpus&&, std::span<const TokenRange>, std::int64_t) = delete;

// What of a document lies beyond T tokens is not used. A document of one token counts in real_tokens, as in
// the released evaluation, and has no label.
//   throws config_error: T < 2, no document of 2 tokens
inline ValidationSet document_validation(const Corpus& corpus, std::span<const TokenRange> documents,
                                         std::int64_t window) {
  if (window < 2) fail<config_error>("validation: a window has {} tokens, needs at least 2", window);
  TokenStream stream(corpus, documents);
  std::vector<TokenRange> instances;
  std::uint64_t at = 0;  // where the document starts in the stream
  for (const TokenRange document : documents) {
    if (document.size() > 0) instances.push_back({at, at + std::min(document.size(), std::uint64_t(window))});
    at += document.size();
  }
  return {std::move(stream), std::move(instances), window};
}
ValidationSet document_validation(Corpus&&, std::span<const TokenRange>, std::int64_t) = delete;

}  // namespace depthbench
