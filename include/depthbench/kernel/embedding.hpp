// Rows of a table by index, and the sum of row gradients by index.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// y (N, d) = table[token];  cost: reads and writes N d
template <class R> struct EmbeddingForward {
  const std::int32_t* token;
  const R* table;
  R* y;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    for (int t = first; t < last; ++t) for (int c = team.begin(); c < team.d; c += team.step()) {
      const int left = team.d - c;
      store_pack(y + std::int64_t(t) * team.d + c, load_pack<P>(table + std::int64_t(token[t]) * team.d + c, left), left);
    }
  }
};

// Positions sorted by their token, in order within a token: group g is token[g], at the positions
// order[start[g]] .. order[start[g + 1] - 1].
struct TokenGroups {
  std::vector<std::int32_t> order, start, token;
  explicit TokenGroups(std::span<const std::int32_t> tokens) : order(tokens.size()) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return tokens[std::size_t(a)] < tokens[std::size_t(b)]; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int32_t t = tokens[std::size_t(order[i])];
      if (!token.empty() && token.back() == t) continue;
      start.push_back(std::int32_t(i));
      token.push_back(t);
    }
    start.push_back(std::int32_t(order.size()));
  }
  int count() const { return int(token.size()); }
};

// dtable[token_i] += dy_i, i in order: a row belongs to one team, so the sum has the same bits wherever it runs.
template <class R> struct EmbeddingBackward {
  const std::int32_t *order, *start, *token;
  const R* dy;
  R* dtable;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    for (int g = first; g < last; ++g) for (int c = team.begin(); c < team.d; c += team.step()) {
      const int left = team.d - c;
      R* to = dtable + std::int64_t(token[g]) * team.d + c;
      P sum = load_pack<P>(to, left);
      for (int i = start[g]; i < start[g + 1]; ++i) sum = sum + load_pack<P>(dy + std::int64_t(order[i]) * team.d + c, left);
      store_pack(to, sum, left);
    }
  }
};

}  // namespace depthbench
