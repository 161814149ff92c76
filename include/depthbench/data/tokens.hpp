// What every part of the data path shares: token ids are std::int32_t, ranges count tokens of a corpus.
#pragma once
#include <cstdint>

#include "depthbench/core/label.hpp"

namespace depthbench {

// Text is read byte by byte: ids 0..255 are the bytes, one more ends a document.
inline constexpr std::int32_t text_end_of_document = 256;
inline constexpr std::int32_t text_vocab_size = 257;

// Tokens [begin, end) of a corpus or stream.
struct TokenRange {
  std::uint64_t begin = 0, end = 0;

  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

}  // namespace depthbench
