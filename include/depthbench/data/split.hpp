// What is trained on and what is held out: two lists of ranges over the same corpus, no token in both.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/core/rng.hpp"
#include "depthbench/data/tokens.hpp"

namespace depthbench {

struct Split {
  std::vector<TokenRange> train, validation;  // in the order of the corpus; validation: one range a document
};

namespace split_detail {

inline void check_fraction(double fraction) {
  if (!(fraction > 0 && fraction < 1))
    fail<config_error>("hold out: the fraction is {}, needs 0 < fraction < 1", fraction);
}
inline std::uint64_t count_of(std::uint64_t n, double fraction) {  // at least one stays on either side
  return std::clamp<std::uint64_t>(std::uint64_t(std::llround(fraction * double(n))), 1, n - 1);
}

}  // namespace split_detail

// Holds out the last `count` documents.
//   throws config_error unless 1 <= count < number of documents
inline Split hold_out_last(std::span<const TokenRange> documents, std::uint64_t count) {
  if (count < 1 || count >= documents.size())
    fail<config_error>("hold out: {} of {} documents are asked for, needs at least 1 and 1 left to train on",
                       count, documents.size());
  const auto cut = documents.end() - std::ptrdiff_t(count);
  return {{documents.begin(), cut}, {cut, documents.end()}};
}

// Holds out the last fraction: of the documents (rounded to whole ones), or of the tokens if there is only
// one document.
//   throws config_error: fraction outside (0, 1), a single document of fewer than 4 tokens
inline Split hold_out_fraction(std::span<const TokenRange> documents, double fraction) {
  split_detail::check_fraction(fraction);
  if (documents.size() > 1)
    return hold_out_last(documents, split_detail::count_of(documents.size(), fraction));
  if (documents.empty() || documents[0].size() < 4)
    fail<config_error>("hold out: has {} tokens, needs 2 to train on and 2 to hold out",
                       documents.empty() ? 0 : documents[0].size());
  const TokenRange all = documents[0];
  const std::uint64_t held =
      std::clamp<std::uint64_t>(split_detail::count_of(all.size(), fraction), 2, all.size() - 2);
  return {{{all.begin, all.end - held}}, {{all.end - held, all.end}}};
}

// Holds out a fraction of the documents, chosen by seed; both lists keep the order of the corpus.
//   throws config_error: fraction outside (0, 1), fewer than 2 documents
inline Split hold_out_random(std::span<const TokenRange> documents, double fraction, std::uint64_t seed) {
  split_detail::check_fraction(fraction);
  if (documents.size() < 2)
    fail<config_error>("hold out: has {} documents to choose from, needs at least 2", documents.size());
  constexpr std::uint64_t purpose = 0x686f6c64;  // "hold"
  const auto order = shuffled(documents.size(), Rng(seed).split(purpose));
  std::vector<bool> held(documents.size(), false);
  for (std::uint64_t i = 0, n = split_detail::count_of(documents.size(), fraction); i < n; ++i)
    held[order[i]] = true;
  Split split;
  for (std::size_t i = 0; i < documents.size(); ++i)
    (held[i] ? split.validation : split.train).push_back(documents[i]);
  return split;
}

}  // namespace depthbench
