// reshape: the same numbers under another shape, without a copy (the gradient is shared too).
// ones:    a constant vector of ones (d);   zeros: constant zeros of any shape
#pragma once
#include "depthbench/kernel/fill.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> reshape(Var<Device, R> x, Shape shape) {
  if (shape.numel() != x.numel())
    fail<shape_error>("reshape: {} has {} elements, {} has {}", x.shape().text(), x.numel(), shape.text(), shape.numel());
  return x.tape->alias(x, shape);
}

template <class Device, class R> Var<Device, R> ones(Tape<Device, R>& tape, std::int64_t d) {
  const auto data = tape.shared_buffer(std::size_t(d));
  tape.device().template for_packs<R>(std::size_t(d), Fill<R>{data.get(), R(1)});
  tape.keep(data);
  return tape.constant(data.get(), {d});
}

template <class Device, class R> Var<Device, R> zeros(Tape<Device, R>& tape, Shape shape) {
  const auto data = tape.shared_buffer(std::size_t(shape.numel()));
  tape.device().zero(data.get(), std::size_t(shape.numel()));
  tape.keep(data);
  return tape.constant(data.get(), shape);
}

}  // namespace depthbench
