// A corpus: tokens in a row, cut into documents. Where they come from (open_corpus.hpp, or memory) is
// forgotten.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "depthbench/core/dtype.hpp"
#include "depthbench/core/error.hpp"
#include "depthbench/data/token_shard.hpp"
#include "depthbench/data/tokens.hpp"
#include "depthbench/io/bytes.hpp"

namespace depthbench {

// A document ends with each end-of-document token (which belongs to it) and at the end of each shard;
// documents stand in order and leave no gap. Copies share the shards.
//   eod: none if the tokens have no end-of-document token; then each shard is a document
//   vocab_size: 0 takes the largest id + 1
//   one scan of all tokens: throws format_error with the position of an id that is negative or not below
//   vocab_size, config_error if there are no tokens or eod is no id of the vocabulary
class Corpus {
 public:
  Corpus(std::vector<TokenShard> shards, std::optional<std::int32_t> eod, std::int64_t vocab_size = 0)
      : shards_(std::move(shards)), eod_(eod) {
    if (vocab_size < 0 || vocab_size > max_vocab)
      fail<config_error>("Corpus: vocab_size is {}, needs 1 to {} (0: the largest id + 1)", vocab_size,
                         max_vocab);
    if (eod && (*eod < 0 || (vocab_size > 0 && *eod >= vocab_size)))
      fail<config_error>("Corpus: the end-of-document id is {}, needs 0 to {}", *eod,
                         (vocab_size ? vocab_size : max_vocab) - 1);
    for (const TokenShard& shard : shards_) {
      starts_.push_back(size_);
      size_ += shard.size();
    }
    if (size_ == 0) fail<config_error>("Corpus: has no tokens");
    limit_ = vocab_size ? vocab_size : max_vocab;
    const std::int64_t largest = scan();
    if (vocab_size == 0) limit_ = std::min(max_vocab, std::max<std::int64_t>(largest, eod.value_or(0)) + 1);
  }

  std::uint64_t size() const { return size_; }
  std::int32_t vocab_size() const { return std::int32_t(limit_); }
  std::optional<std::int32_t> eod() const { return eod_; }
  const std::vector<TokenRange>& documents() const { return documents_; }

  std::int32_t token(std::uint64_t i) const {
    std::int32_t id = 0;
    copy({i, i + 1}, {&id, 1});
    return id;
  }

  // out (range.size())
  void copy(TokenRange range, std::span<std::int32_t> out) const {
    if (range.begin > range.end || range.end > size_)
      fail<config_error>("Corpus: tokens [{}, {}) are asked for, has {}", range.begin, range.end, size_);
    if (out.size() != range.size())
      fail<shape_error>("Corpus: {} tokens are asked for, the buffer has {}", range.size(), out.size());
    auto shard = std::size_t(std::upper_bound(starts_.begin(), starts_.end(), range.begin) - starts_.begin());
    for (--shard; !out.empty(); ++shard) {
      const std::uint64_t begin = range.begin - starts_[shard];
      const std::size_t n = std::size_t(std::min<std::uint64_t>(out.size(), shards_[shard].size() - begin));
      shards_[shard].copy(begin, out.first(n), limit_);
      out = out.subspan(n);
      range.begin += n;
    }
  }

 private:
  static constexpr std::int64_t max_vocab = std::numeric_limits<std::int32_t>::max();

  std::int64_t scan() {  // fills documents_, checks every id, returns the largest
    std::vector<std::int32_t> chunk(std::size_t{1} << 16);
    std::int64_t largest = 0;
    for (std::size_t s = 0; s < shards_.size(); ++s) {
      const std::uint64_t end = starts_[s] + shards_[s].size();
      std::uint64_t document = starts_[s];
      for (std::uint64_t at = starts_[s]; at < end;) {
        const auto ids = std::span(chunk).first(std::size_t(std::min<std::uint64_t>(chunk.size(), end - at)));
        shards_[s].copy(at - starts_[s], ids, limit_);
        for (std::size_t i = 0; i < ids.size(); ++i) {
          largest = std::max<std::int64_t>(largest, ids[i]);
          if (ids[i] == eod_) documents_.push_back({std::exchange(document, at + i + 1), at + i + 1});
        }
        at += ids.size();
      }
      if (document < end) documents_.push_back({document, end});
    }
    return largest;
  }

  std::vector<TokenShard> shards_;
  std::vector<std::uint64_t> starts_;  // of each shard, in tokens
  std::uint64_t size_ = 0;
  std::int64_t limit_ = 0;
  std::optional<std::int32_t> eod_;
  std::vector<TokenRange> documents_;
};

// A corpus in memory, for tests, tasks and embedded texts.
inline Corpus corpus_from_tokens(std::vector<std::int32_t> ids,
                                 std::optional<std::int32_t> eod = std::nullopt,
                                 std::int64_t vocab_size = 0) {
  const auto owner = std::make_shared<const std::vector<std::int32_t>>(std::move(ids));
  const auto bytes = std::as_bytes(std::span(*owner));
  return Corpus({TokenShard("memory", owner, bytes, DType::i32)}, eod, vocab_size);
}

// Bytes as tokens, one document, closed by text_end_of_document.
inline Corpus corpus_from_text(std::string_view text) {
  const auto owner = std::make_shared<const std::string>(text);
  return Corpus({TokenShard("memory", owner, as_byte_span(*owner), DType::u8, text_end_of_document)},
                text_end_of_document, text_vocab_size);
}

}  // namespace depthbench
