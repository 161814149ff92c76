// y = x W^T                         x (N, in)   W (out, in)   ->   y (N, out)
//   cost: 2 N in out FLOPs, three times with the backward pass; saves nothing but its inputs
#pragma once
#include "depthbench/backend/gemm.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> linear(Var<Device, R> x, Var<Device, R> w) {
  auto& tape = *x.tape;
  const std::int64_t n = x.rows(), in = x.cols(), out = w.rows();
  if (w.shape().rank() != 2 || w.cols() != in)
    fail<shape_error>("linear: W has shape {}, needs (out, {}) to match x {}", w.shape().text(), in, x.shape().text());
  auto y = tape.make({n, out});
  tape.device().gemm(GemmArgs<R>{Op::None, Op::Transpose, n, out, in, tape.operand(x), in, tape.operand(w), in}, R(0), y.out(), out);
  tape.record(1, [&tape, x, w, y, n, in, out] {
    const auto dy = tape.input(tape.grad(y), y.numel());
    if (const auto dw = tape.accumulate(w); dw.g)
      tape.device().gemm(GemmArgs<R>{Op::Transpose, Op::None, out, in, n, dy.operand(), out, tape.operand(x), in}, dw.beta(), dw.g, in);
    if (const auto dx = tape.accumulate(x); dx.g)
      tape.device().gemm(GemmArgs<R>{Op::None, Op::None, n, in, out, dy.operand(), out, tape.operand(w), in}, dx.beta(), dx.g, in);
  });
  return y;
}

}  // namespace depthbench
