// y_n = E[token_n]                  tokens (N)   E (V, d)   ->   y (N, d)
//   throws shape_error if a token is not in [0, V)
//   The gradient of a row adds its tokens in their order: the same bits on any number of threads.
#pragma once
#include <span>

#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/embedding.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> embedding(std::span<const std::int32_t> tokens, Var<Device, R> table) {
  auto& tape = *table.tape;
  const std::int64_t n = std::int64_t(tokens.size()), d = table.cols();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= table.rows())
      fail<shape_error>("embedding: token {} at position {} is outside the table of {} rows", tokens[i], i, table.rows());
  auto y = tape.make({n, d});
  const auto timing = tape.device().timed(Section::data, 0, 2.0 * n * d * sizeof(R));
  const auto staged = tape.device().stage(tokens);
  tape.device().template for_tiles<R>(int(n), 64, int(d), EmbeddingForward<R>{staged.data(), table.value(), y.out()});
  tape.record(1, [&tape, tokens, table, y, n, d] {
    R* g = tape.sum_of_grads(table);
    if (!g) return;
    const auto timing = tape.device().timed(Section::data, 1.0 * n * d, 3.0 * n * d * sizeof(R));
    const TokenGroups groups(tokens);
    const auto list = [&](const std::vector<std::int32_t>& v) { return tape.device().stage(std::span<const std::int32_t>(v)); };
    const auto order = list(groups.order), start = list(groups.start), token = list(groups.token);
    const EmbeddingBackward<R> body{order.data(), start.data(), token.data(), tape.grad(y), g};
    tape.device().template for_tiles<R>(groups.count(), 1, int(d), body);
  });
  return y;
}

}  // namespace depthbench
