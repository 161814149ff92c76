// The head and the loss in one:   loss = sum over labelled n of nll(x_n W^T, target_n) / normaliser
//   x (N, d)   W (V, d)   targets (N), ignored_target = no label   ->   scalar
//   normaliser: a number known beforehand (labels of the whole batch, so that micro-batches add up)
//   throws shape_error for a target outside [0, V)
//   cost: 6 N d V FLOPs, two thirds of them counted as backward. Logits exist for a chunk of rows at a time, and become their own gradient in place: no (N, V)
//   array is ever held. The gradients of x and W are formed during the forward pass and kept: N d + V d.
#pragma once
#include <span>

#include "depthbench/core/profile.hpp"
#include "depthbench/backend/gemm.hpp"
#include "depthbench/kernel/cross_entropy.hpp"
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/kernel/sum_of.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

namespace detail {
inline std::int64_t rows_of_logits(std::int64_t n, std::int64_t vocab, std::size_t element) {  // about 4 MB, 64 rows or more
  const std::int64_t fit = (std::int64_t{4} << 20) / std::int64_t(element) / std::max<std::int64_t>(vocab, 1);
  return std::clamp<std::int64_t>(fit / 64 * 64, 64, std::max<std::int64_t>(n, 64));
}
}  // namespace detail

inline void check_targets(std::span<const std::int32_t> targets, std::int64_t n, std::int64_t vocab) {
  if (std::int64_t(targets.size()) != n) fail<shape_error>("linear_cross_entropy: {} targets, needs {} (rows of x)", targets.size(), n);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (targets[i] != ignored_target && (targets[i] < 0 || targets[i] >= vocab))
      fail<shape_error>("linear_cross_entropy: target {} at position {} is outside [0, {})", targets[i], i, vocab);
}

// targets: N, checked (check_targets), where the device reads them.
// nll_out, if not null, receives the N losses of single positions (zero where there is no label), on the host.
template <class Device, class R>
Var<Device, R> linear_cross_entropy(Var<Device, R> x, Var<Device, R> w, const std::int32_t* targets, double normaliser, R* nll_out = nullptr) {
  auto& tape = *x.tape;
  auto& device = tape.device();
  const std::int64_t n = x.rows(), d = x.cols(), vocab = w.rows();
  if (w.cols() != d) fail<shape_error>("linear_cross_entropy: W has shape {}, needs (V, {})", w.shape().text(), d);

  const bool gradient = tape.recording();
  const std::int64_t chunk = detail::rows_of_logits(n, vocab, sizeof(R));
  R* logits = tape.acquire_buffer(std::size_t(chunk * vocab));
  R* nll = tape.acquire_buffer(std::size_t(n));
  Var<Device, R> dx, dw;
  if (gradient) {
    dx = tape.make({n, d});
    dw = tape.make({vocab, d});
  }
  for (std::int64_t first = 0; first < n; first += chunk) {
    const std::int64_t m = std::min(chunk, n - first);
    device.gemm(GemmArgs<R>{Op::None, Op::Transpose, m, vocab, d, tape.operand(x) + first * d, d, tape.operand(w), d}, R(0), logits, vocab);
    {
      const auto timing = device.timed(Section::loss, (gradient ? 5.0 : 4.0) * m * vocab, 2.0 * m * vocab * sizeof(R));  // max, -, exp, +; scaling
      const std::int32_t* target = targets + first;
      const auto rows = [&]<bool with_gradient>() {
        device.template for_tiles<R>(int(m), 4, int(vocab),
                                     CrossEntropyRows<with_gradient, R>{logits, int(vocab), target, nll + first, R(1 / normaliser)});
      };
      if (gradient) rows.template operator()<true>(); else rows.template operator()<false>();
    }
    if (!gradient) continue;
    const auto early = device.profile().within(Pass::backward);
    const auto dlogits = tape.input(logits, m * vocab);
    device.gemm(GemmArgs<R>{Op::None, Op::None, m, d, vocab, dlogits.operand(), vocab, tape.operand(w), d}, R(0), dx.out() + first * d, d);
    device.gemm(GemmArgs<R>{Op::Transpose, Op::None, vocab, d, m, dlogits.operand(), vocab, tape.operand(x) + first * d, d}, R(first > 0), dw.out(), d);
  }
  auto loss = tape.make({});
  device.template for_tiles<double>(1, 1, int(n), SumOf<R, R, DividedBy>{nll, loss.out(), {normaliser}});
  if (nll_out) device.download(nll_out, nll, std::size_t(n));
  tape.release_buffer(nll, std::size_t(n));
  tape.release_buffer(logits, std::size_t(chunk * vocab));
  tape.record(3, [&tape, x, w, dx, dw, loss] {
    const R* seed = tape.grad(loss);
    for (const auto& [input, made] : {std::pair{x, dx}, std::pair{w, dw}})
      if (const auto g = tape.accumulate(input); g.g)
        tape.device().template for_packs<R>(std::size_t(input.numel()), ScaleBy<R>{made.value(), g.g, seed, g.add});
  });
  return loss;
}

// The same of a list of the host's.
template <class Device, class R>
Var<Device, R> linear_cross_entropy(Var<Device, R> x, Var<Device, R> w, std::span<const std::int32_t> targets, double normaliser, R* nll_out = nullptr) {
  check_targets(targets, x.rows(), w.rows());
  const auto staged = x.tape->device().stage(targets);
  return linear_cross_entropy(x, w, staged.data(), normaliser, nll_out);
}

}  // namespace depthbench
