// y_n = E[token_n]                  tokens (N)   E (V, d)   ->   y (N, d)
//   throws shape_error if a token is not in [0, V)
//   The gradient of a row adds its tokens in their order: the same bits on any number of threads.
#pragma once
#include <memory>
#include <span>

#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/embedding.hpp"
#include "depthbench/op/token_batch.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

inline void check_tokens(std::span<const std::int32_t> tokens, std::int64_t rows) {
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= rows)
      fail<shape_error>("embedding: token {} at position {} is outside the table of {} rows", tokens[i], i, rows);
}

template <class Device, class R> Var<Device, R> embedding(std::shared_ptr<const TokenBatch<Device>> tokens, Var<Device, R> table) {
  auto& tape = *table.tape;
  const std::int64_t n = tokens->size(), d = table.cols();
  check_tokens(tokens->host_tokens(), table.rows());
  auto y = tape.make({n, d});
  const auto timing = tape.device().timed(Section::data, 0, 2.0 * n * d * sizeof(R));
  tape.device().template for_tiles<R>(int(n), 64, int(d), EmbeddingForward<R>{tokens->tokens(), table.value(), y.out()});
  tape.record(1, [&tape, tokens, table, y, n, d] {
    R* g = tape.sum_of_grads(table);
    if (!g) return;
    const auto timing = tape.device().timed(Section::data, 1.0 * n * d, 3.0 * n * d * sizeof(R));
    const EmbeddingBackward<R> body{tokens->order(), tokens->start(), tokens->token(), tape.grad(y), g};
    tape.device().template for_tiles<R>(tokens->groups(), 1, int(d), body);
  });
  return y;
}

// The same of a list of the host's, which is copied.
template <class Device, class R> Var<Device, R> embedding(std::span<const std::int32_t> tokens, Var<Device, R> table) {
  const auto batch = std::make_shared<TokenBatch<Device>>(table.tape->device(), std::int64_t(tokens.size()));
  batch->fill(tokens, {}, table.tape->recording() ? Groups::yes : Groups::no);
  return embedding<Device, R>(std::shared_ptr<const TokenBatch<Device>>(batch), table);
}

}  // namespace depthbench
