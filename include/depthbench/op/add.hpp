// y = a + b                         a, b of one shape.         scale: y = c a
#pragma once
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> add(Var<Device, R> a, Var<Device, R> b) {
  check_shape("add", "b", b.shape(), a.shape());
  auto& tape = *a.tape;
  const std::size_t n = std::size_t(a.numel());
  auto y = tape.make(a.shape());
  tape.device().template for_packs<R>(n, AddForward<R>{a.value(), b.value(), y.out()});
  tape.record(1, [&tape, a, b, y, n] {
    const R* dy = tape.grad(y);
    for (const auto& x : {a, b})
      if (const auto dx = tape.accumulate(x); dx.g) tape.device().template for_packs<R>(n, Scale<R>{dy, dx.g, R(1), dx.add});
  });
  return y;
}

template <class Device, class R> Var<Device, R> scale(Var<Device, R> a, R c) {
  auto& tape = *a.tape;
  const std::size_t n = std::size_t(a.numel());
  auto y = tape.make(a.shape());
  tape.device().template for_packs<R>(n, Scale<R>{a.value(), y.out(), c, false});
  tape.record(1, [&tape, a, y, c, n] {
    if (const auto dx = tape.accumulate(a); dx.g)
      tape.device().template for_packs<R>(n, Scale<R>{tape.grad(y), dx.g, c, dx.add});
  });
  return y;
}

}  // namespace depthbench
