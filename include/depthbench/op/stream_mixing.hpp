// Streams mixed by coefficients that belong to the token, for any number of streams.
//   c coefficients, laid out as MixLayout says   x (N, n d) streams
//   mix_streams:         y_j = sum_s c_js x_s                                -> (N, count d)
//   write_streams:       y_s = x_s + c_0s b,   b (N, d)                      -> (N, n d)
//   hyper_coefficients:  c[s][j] = table[s][j] + scale[j] tanh(z[s][j])      z (N n, w), scale (w), table (n, w) -> (N, n w)
#pragma once
#include <cmath>

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
}  // namespace detail

template <class Device, class R> Var<Device, R> mix_streams(Var<Device, R> c, MixLayout layout, int count, Var<Device, R> x, int n) {
  auto& tape = *x.tape;
  const MixShape m = detail::mix_shape("mix_streams", c, layout, count, x, n);
  auto y = tape.make({m.tokens, std::int64_t(count) * m.d});
  mix_forward(tape.device(), m, c.value(), x.value(), y.out());
  tape.record(1, [&tape, m, c, x, y] {
    const auto dc = tape.accumulate_always(c), dx = tape.accumulate_always(x);
    if (!dc.add) tape.device().zero(dc.g, std::size_t(c.numel()));
    mix_backward(tape.device(), m, c.value(), x.value(), tape.grad(y), dc.g, dx.g, dx.add);
  });
  return y;
}

template <class Device, class R> Var<Device, R> write_streams(Var<Device, R> c, MixLayout layout, Var<Device, R> x, Var<Device, R> b, int n) {
  auto& tape = *x.tape;
  const MixShape m = detail::mix_shape("write_streams", c, layout, 1, x, n);
  check_shape("write_streams", "b", b.shape(), {m.tokens, m.d});
  auto y = tape.make(x.shape());
  spread_forward(tape.device(), m, c.value(), x.value(), b.value(), y.out());
  tape.record(1, [&tape, m, c, x, b, y] {
    const R* dy = tape.grad(y);
    const auto dc = tape.accumulate_always(c), db = tape.accumulate_always(b), dx = tape.accumulate_always(x);
    if (!dc.add) tape.device().zero(dc.g, std::size_t(c.numel()));
    spread_backward(tape.device(), m, c.value(), b.value(), dy, dc.g, db.g, db.add);
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
  tape.device().single([&] {
    for (std::int64_t i = 0; i < tokens * n * w; ++i) c.out()[i] = table.value()[i % (n * w)] + scale.value()[i % w] * std::tanh(z.value()[i]);
  });
  tape.record(1, [&tape, z, scale, table, c, n, w, tokens] {
    const R* dc = tape.grad(c);
    const auto dz = tape.accumulate_always(z), dscale = tape.accumulate_always(scale), dtable = tape.accumulate_always(table);
    for (const auto& [g, v] : {std::pair{dz, z}, std::pair{dscale, scale}, std::pair{dtable, table}})
      if (!g.add) tape.device().zero(g.g, std::size_t(v.numel()));
    tape.device().single([&] {
      for (std::int64_t i = 0; i < tokens * n * w; ++i) {
        const R t = std::tanh(z.value()[i]);
        dtable.g[i % (n * w)] += dc[i];
        dscale.g[i % w] += dc[i] * t;
        dz.g[i] += dc[i] * scale.value()[i % w] * (R(1) - t * t);
      }
    });
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
