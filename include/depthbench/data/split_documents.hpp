// Cuts a text into pieces at blank lines, so that a part of one long text can be held out without splitting a
// paragraph:  hold_out_fraction(split_documents(corpus, 4096), 0.1)
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/data/corpus.hpp"
#include "depthbench/data/tokens.hpp"

namespace depthbench {

// Every piece but a document's last has at least min_tokens tokens and ends after a blank line (\n\n or
// \r\n\r\n, the run taken whole); the pieces join up to the documents. No end-of-document token is added.
//   corpus: bytes as tokens (text); throws config_error for another, or min_tokens 0
inline std::vector<TokenRange> split_documents(const Corpus& corpus, std::uint64_t min_tokens) {
  if (corpus.eod() != text_end_of_document)
    fail<config_error>("split_documents: has tokens that are not bytes of a text, needs a text corpus");
  if (min_tokens == 0) fail<config_error>("split_documents: min_tokens is 0, needs at least 1");
  std::vector<TokenRange> pieces;
  std::vector<std::int32_t> chunk;
  for (const TokenRange document : corpus.documents()) {
    std::uint64_t begin = document.begin;
    int newlines = 0;
    for (std::uint64_t at = document.begin; at < document.end;) {
      chunk.resize(std::size_t(std::min<std::uint64_t>(1 << 16, document.end - at)));
      corpus.copy({at, at + chunk.size()}, chunk);
      for (const std::int32_t id : chunk) {
        const bool paragraph = newlines >= 2 && id != '\n' && id != '\r' && id != text_end_of_document;
        if (paragraph && at - begin >= min_tokens) {
          pieces.push_back({begin, at});
          begin = at;
        }
        newlines = id == '\n' ? std::min(newlines + 1, 2) : id == '\r' ? newlines : 0;
        ++at;
      }
    }
    pieces.push_back({begin, document.end});
  }
  return pieces;
}

}  // namespace depthbench
