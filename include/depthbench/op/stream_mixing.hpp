// Streams mixed by coefficients that belong to the token, for any number of streams.
//   c coefficients, laid out as MixLayout says   x (N, n d) streams
//   mix_streams:         y_j = sum_s c_js x_s                                -> (N, count d)
//   write_streams:       y_s = x_s + c_0s b,   b (N, d)                      -> (N, n d)
//   hyper_coefficients:  c[s][j] = table[s][j] + scale[j] tanh(z[s][j])      z (N n, w), scale (w), table (n, w) -> (N, n w)
#pragma once
#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/elementwise.hpp"
#include "depthbench/kernel/stream_mixing.hpp"
#include "depthbench/tape/tape.hpp"

namespace depthbench {

namespace detail {
template <class Device, class R> MixShape mix_shape(const char* op, Var<Device, R> c, MixLayout layout, int count, Var<Device, R> x, int n) {
  if (n < 1) fail<shape_error>("{}: {} streams, needs 1 or more", op, n);
  const MixShape m{x.rows(), n, x.cols() / n, count, layout};
  if (x.cols() % n != 0 || m.at(m.tokens - 1, n - 1, count - 1) >= c.numel())
    fail<shape_error>("{}: c has shape {}, too few coefficients for {} streams of x {}", op, c.shape().text(), n, x.shape().text());
  return m;
}
// `products` multiply-adds a channel, `rows` rows of d moved, of every token
template <class Device> auto timed_mixing(Device& device, const MixShape& m, double products, double rows, std::size_t element) {
  const double channels = double(m.tokens) * m.d;
  return device.timed(Section::rows, 2 * products * channels, rows * channels * double(element));
}
}  // namespace detail

template <class Device, class R> Var<Device, R> mix_streams(Var<Device, R> c, MixLayout layout, int count, Var<Device, R> x, int n) {
  auto& tape = *x.tape;
  const MixShape m = detail::mix_shape("mix_streams", c, layout, count, x, n);
  auto y = tape.make({m.tokens, std::int64_t(count) * m.d});
  const auto timing = detail::timed_mixing(tape.device(), m, n * count, n + count, sizeof(R));
  tape.device().template for_tiles<R>(m.tokens, 8, m.d, MixForward<R>{m, c.value(), x.value(), y.out()});
  tape.record(1, [&tape, m, c, x, y, n, count] {
    const auto timing = detail::timed_mixing(tape.device(), m, 2 * n * count, 2 * n + count, sizeof(R));
    R* dc = tape.sum_of_grads_always(c);
    const auto dx = tape.accumulate_always(x);
    tape.device().template for_tiles<R>(m.tokens, 8, m.d, MixBackward<R>{m, c.value(), x.value(), tape.grad(y), dc, dx.g, dx.add});
  });
  return y;
}

template <class Device, class R> Var<Device, R> write_streams(Var<Device, R> c, MixLayout layout, Var<Device, R> x, Var<Device, R> b, int n) {
  auto& tape = *x.tape;
  const MixShape m = detail::mix_shape("write_streams", c, layout, 1, x, n);
  check_shape("write_streams", "b", b.shape(), {m.tokens, m.d});
  auto y = tape.make(x.shape());
  const auto timing = detail::timed_mixing(tape.device(), m, n, 2 * n + 1, sizeof(R));
  tape.device().template for_tiles<R>(m.tokens, 8, m.d, SpreadForward<R>{m, c.value(), x.value(), b.value(), y.out()});
  tape.record(1, [&tape, m, c, x, b, y, n] {
    const R* dy = tape.grad(y);
    R* dc = tape.sum_of_grads_always(c);
    const auto db = tape.accumulate_always(b), dx = tape.accumulate_always(x);
    {
      const auto timing = detail::timed_mixing(tape.device(), m, 2 * n, n + 2, sizeof(R));
      tape.device().template for_tiles<R>(m.tokens, 8, m.d, SpreadBackward<R>{m, c.value(), b.value(), dy, dc, db.g, db.add});
    }
    tape.device().template for_packs<R>(std::size_t(x.numel()), Scale<R>{dy, dx.g, R(1), dx.add});
  });
  return y;
}

template <class Device, class R>
Var<Device, R> hyper_coefficients(Var<Device, R> z, Var<Device, R> scale, Var<Device, R> table) {
  auto& tape = *z.tape;
  const std::int64_t n = table.rows(), w = table.cols(), tokens = n > 0 ? z.rows() / n : 0;
  check_shape("hyper_coefficients", "z", z.shape(), {tokens * n, w});
  check_shape("hyper_coefficients", "scale", scale.shape(), {w});
  check_shape("hyper_coefficients", "table", table.shape(), {n, w});
  auto c = tape.make({tokens, n * w});
  const double count = double(tokens * n * w);
  const auto timing = tape.device().timed(Section::elementwise, 3 * count, 2 * count * sizeof(R));  // tanh, *, +
  tape.device().for_elements(std::size_t(tokens * n * w), HyperCoefficients<R>{z.value(), scale.value(), table.value(), c.out(), n * w, w});
  tape.record(1, [&tape, z, scale, table, c, n, w, tokens, count] {
    const auto timing = tape.device().timed(Section::elementwise, 9 * count, 3 * count * sizeof(R));
    const R* dc = tape.grad(c);
    R *dz = tape.sum_of_grads_always(z), *dscale = tape.sum_of_grads_always(scale), *dtable = tape.sum_of_grads_always(table);
    tape.device().for_elements(std::size_t(w), HyperCoefficientsSums<R>{z.value(), dc, dscale, dtable, tokens * n * w, n * w, w});
    tape.device().for_elements(std::size_t(tokens * n * w), HyperCoefficientsDz<R>{z.value(), scale.value(), dc, dz, w});
  });
  return c;
}

namespace detail {
// Calls f with the number of streams as a compile-time constant, or plain() where no program is compiled for it.
template <class F, class Plain> auto with_streams(int n, F f, Plain plain) {
  switch (n) {
    case 2: return f.template operator()<2>();
    case 4: return f.template operator()<4>();
    default: return plain();
  }
}
}  // namespace detail

}  // namespace depthbench
