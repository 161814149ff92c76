// repeat_streams: x (N, d) -> n copies side by side (N, n d)
// sum_streams:    x (N, n d) -> c * sum over the n streams (N, d);  c = 1 the sum, 1 / n the mean
#pragma once
#include "depthbench/kernel/streams.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> repeat_streams(Var<Device, R> x, int n) {
  auto& tape = *x.tape;
  const std::int64_t rows = x.rows(), d = x.cols();
  auto y = tape.make({rows, n * d});
  tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsRepeat<R>{x.value(), y.out(), n, R(1), false});
  tape.record(1, [&tape, x, y, rows, n, d] {
    const R* dy = tape.grad(y);
    if (const auto dx = tape.accumulate(x); dx.g) 
      tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsSum<R>{dy, dx.g, n, R(1), dx.add});
  });
  return y;
}

template <class Device, class R> Var<Device, R> sum_streams(Var<Device, R> x, int n, R c) {
  auto& tape = *x.tape;
  if (n < 1 || x.cols() % n != 0) fail<shape_error>("sum_streams: x has shape {}, needs columns for {} streams", x.shape().text(), n);
  const std::int64_t rows = x.rows(), d = x.cols() / n;
  auto y = tape.make({rows, d});
  tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsSum<R>{x.value(), y.out(), n, c, false});
  tape.record(1, [&tape, x, y, rows, n, d, c] {
    const R* dy = tape.grad(y);
    if (const auto dx = tape.accumulate(x); dx.g) 
      tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsRepeat<R>{dy, dx.g, n, c, dx.add});
  });
  return y;
}

}  // namespace depthbench
