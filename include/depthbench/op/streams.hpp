// repeat_streams: x (N, d) -> n copies side by side (N, n d)
// sum_streams:    x (N, n d) -> c * sum over the n streams (N, d);  c = 1 the sum, 1 / n the mean
#pragma once
#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/streams.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

namespace detail {
// n rows summed into one, or one spread over n: FLOPs and bytes, `add` to what is there
template <class Device, class R> auto timed_streams(Tape<Device, R>& tape, std::int64_t rows, int n, std::int64_t d, bool sums, bool add) {
  const double one = double(rows) * double(d), written = sums ? one : n * one;
  return tape.device().timed(Section::rows, (sums ? n * one : 0) + (add ? written : 0), ((n + 1) * one + (add ? written : 0)) * sizeof(R));
}
}  // namespace detail

template <class Device, class R> Var<Device, R> repeat_streams(Var<Device, R> x, int n) {
  auto& tape = *x.tape;
  const std::int64_t rows = x.rows(), d = x.cols();
  auto y = tape.make({rows, n * d});
  const auto timing = detail::timed_streams(tape, rows, n, d, false, false);
  tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsRepeat<R>{x.value(), y.out(), n, R(1), false});
  tape.record(1, [&tape, x, y, rows, n, d] {
    const R* dy = tape.grad(y);
    if (const auto dx = tape.accumulate(x); dx.g) {
      const auto timing = detail::timed_streams(tape, rows, n, d, true, dx.add);
      tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsSum<R>{dy, dx.g, n, R(1), dx.add});
    }
  });
  return y;
}

template <class Device, class R> Var<Device, R> sum_streams(Var<Device, R> x, int n, R c) {
  auto& tape = *x.tape;
  if (n < 1 || x.cols() % n != 0) fail<shape_error>("sum_streams: x has shape {}, needs columns for {} streams", x.shape().text(), n);
  const std::int64_t rows = x.rows(), d = x.cols() / n;
  auto y = tape.make({rows, d});
  const auto timing = detail::timed_streams(tape, rows, n, d, true, false);
  tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsSum<R>{x.value(), y.out(), n, c, false});
  tape.record(1, [&tape, x, y, rows, n, d, c] {
    const R* dy = tape.grad(y);
    if (const auto dx = tape.accumulate(x); dx.g) {
      const auto timing = detail::timed_streams(tape, rows, n, d, false, dx.add);
      tape.device().template for_tiles<R>(int(rows), 16, int(d), StreamsRepeat<R>{dy, dx.g, n, c, dx.add});
    }
  });
  return y;
}

}  // namespace depthbench
