// h = silu(a) * b                   a, b (N, f)   ->   h (N, f)                              Shazeer 2020, eq. 6
//   cost: reads 2 N f, writes N f elements (backward: 3 and 2)
#pragma once
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> swiglu(Var<Device, R> a, Var<Device, R> b) {
  check_shape("swiglu", "b", b.shape(), a.shape());
  auto& tape = *a.tape;
  const std::size_t n = std::size_t(a.numel());
  auto h = tape.make(a.shape());
  tape.device().template for_packs<R>(n, SwigluForward<R>{a.value(), b.value(), h.out()});
  tape.record(1, [&tape, a, b, h, n] {
    const R* dh = tape.grad(h);
    const auto da = tape.accumulate(a), db = tape.accumulate(b);
    tape.device().template for_packs<R>(n, SwigluBackward<R>{a.value(), b.value(), dh, da.g, db.g, da.add, db.add});
  });
  return h;
}

}  // namespace depthbench
