// How many bytes of tensors a run will take at its peak, in closed form.
//
//   parameters, gradients, two moments     4 slabs of 4 bytes a parameter
//   activations of one micro-batch, N = micro_batch T tokens, floats a token:
//     block, kept       u, q, attention, y of the attention; u, y of the FFN: 6 d;  k, v: 2 kv;  softmax: H;
//                       w1 u, w3 u, their product: 3 f
//     residual path     what a sublayer leaves besides its input u and output y:
//                         pre_ln and most  d              hc, mhc         n d + n (n + 2)
//                         attn_res  d + 4 + K / 2         block_attn_res  1.75 d + 4 + K / 2
//                       and moda, a block: 5 kv (its slots)
//     head              embedding, last read, normed input, gradient of it: 4 d
//   gradients in flight, early in the backward pass: one FFN sublayer, 3 f + 2 d and twice the carry
//   the loss: the gradient of W_head (V d), and either logits of a chunk of rows or the gradients in flight
//   recompute: only the carry, u (and for attn_res y and its scores) of each block, and one block in full
//   row programs: 16 partial sums of the widest parameters
// A design of a user's own counts as pre_ln. tests/app/memory_test.cpp holds it to 25 % of what was measured.
#pragma once
#include "engine.hpp"

namespace depthbench::app {

struct MemoryEstimate {
  double parameters = 0, gradients = 0, moments = 0, activations = 0;  // bytes
  double total() const { return parameters + gradients + moments + activations; }
};
MemoryEstimate memory_estimate(const RunConfig& config, const PartCounts& counts);

}  // namespace depthbench::app
