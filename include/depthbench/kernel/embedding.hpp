// Rows of a table by index, and the sum of row gradients by index.
#pragma once
#include <cstdint>

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

// dtable[token_i] += dy_i, i in order: a row belongs to one team, so the sum has the same bits wherever it runs.
//   positions sorted by token: group g is token[g], at order[start[g]] .. order[start[g + 1] - 1]; empty groups are passed over
template <class R> struct EmbeddingBackward {
  const std::int32_t *order, *start, *token;
  const R* dy;
  R* dtable;
  template <class Team> DB_FN void operator()(Team& team, int first, int last) const {
    using P = typename Team::Pack;
    for (int g = first; g < last; ++g) if (start[g] < start[g + 1]) for (int c = team.begin(); c < team.d; c += team.step()) {
      const int left = team.d - c;
      R* to = dtable + std::int64_t(token[g]) * team.d + c;
      P sum = load_pack<P>(to, left);
      for (int i = start[g]; i < start[g + 1]; ++i) sum = sum + load_pack<P>(dy + std::int64_t(order[i]) * team.d + c, left);
      store_pack(to, sum, left);
    }
  }
};

}  // namespace depthbench
