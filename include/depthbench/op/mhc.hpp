// mHC on the tape. n streams side by side: x (N, n d), stream-major; coefficients c (n^2 + 2 n, N).
//   stream_squares    x -> squares (N, 1)
//   mhc_coefficients  x, squares -> c
//   mhc_read          x, c -> u (N, d)
//   mhc_write         x, c, y -> x', squares'
//   cost per token, forward: 2 n d (n^2 + 2 n) FLOPs of projection; x read three times, x' and u written
#pragma once
#include "depthbench/backend/gemm.hpp"
#include "depthbench/core/profile.hpp"
#include "depthbench/kernel/mhc.hpp"
#include "depthbench/op/add.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/op/rms_norm.hpp"
#include "depthbench/op/row_program.hpp"
#include "depthbench/op/stream_mixing.hpp"

namespace depthbench {

template <class Device, class R> struct MhcParameters {
  Var<Device, R> phi, bias, alpha_pre, alpha_post, alpha_res;  // (n d, n^2 + 2 n)  (n^2 + 2 n)  ()  ()  ()
};
struct MhcOptions {
  int n = 4, iterations = 20;  // streams, 1 to 8; of Sinkhorn, 1 to 64
  double eps = 1e-6, sinkhorn_eps = 1e-6;
};

template <class Device, class R> Var<Device, R> stream_squares(Var<Device, R> x) {  // one row of n d: any number of streams
  return apply<StreamSquares<1>, Device, R>({}, x.cols(), {}, {x})[0];
}

namespace detail {
template <int n, class Device, class R>
MhcCoefficients<n, R> mhc_inputs(const MhcParameters<Device, R>& p, Var<Device, R> z, Var<Device, R> squares, std::int64_t nd, const MhcOptions& o) {
  return {z.value(), squares.value(), {p.alpha_pre.value(), p.alpha_post.value(), p.alpha_res.value()}, p.bias.value(),
          squares.numel(), R(nd), R(o.eps), R(o.sinkhorn_eps), o.iterations};
}
// Calls f with n = 1 .. 8 as a compile-time constant.
template <class F> void with_n(int n, F f) {
  switch (n) {
    case 1: return f.template operator()<1>();
    case 2: return f.template operator()<2>();
    case 3: return f.template operator()<3>();
    case 4: return f.template operator()<4>();
    case 5: return f.template operator()<5>();
    case 6: return f.template operator()<6>();
    case 7: return f.template operator()<7>();
    case 8: return f.template operator()<8>();
  }
  fail<shape_error>("mhc: {} streams, needs 1 to 8", n);
}
}  // namespace detail

template <class Device, class R>
Var<Device, R> mhc_coefficients(const MhcParameters<Device, R>& p, Var<Device, R> x, Var<Device, R> squares, const MhcOptions& o) {
  auto& tape = *x.tape;
  const std::int64_t tokens = x.rows(), nd = x.cols(), count = std::int64_t(o.n) * o.n + 2 * o.n;
  constexpr int most = SinkhornDivisors<1, cpu_pack<R>>::max_iterations;
  if (o.iterations < 1 || o.iterations > most) fail<shape_error>("mhc_coefficients: {} iterations, needs 1 to {}", o.iterations, most);
  check_shape("mhc_coefficients", "phi", p.phi.shape(), {nd, count});
  check_shape("mhc_coefficients", "b", p.bias.shape(), {count});
  check_shape("mhc_coefficients", "alpha_pre", p.alpha_pre.shape(), {});
  check_shape("mhc_coefficients", "alpha_post", p.alpha_post.shape(), {});
  check_shape("mhc_coefficients", "alpha_res", p.alpha_res.shape(), {});
  check_shape("mhc_coefficients", "squares", squares.shape(), {tokens, 1});
  auto z = tape.make({count, tokens}), c = tape.make({count, tokens});
  tape.device().gemm(GemmArgs<R>{Op::Transpose, Op::Transpose, count, tokens, nd, tape.operand(p.phi), count, tape.operand(x), nd}, R(0), z.out(), tokens);
  detail::with_n(o.n, [&]<int n>() {
    tape.device().template for_packs<R>(std::size_t(tokens), MhcForward<n, R>{detail::mhc_inputs<n>(p, z, squares, nd, o), c.out()});
  });
  tape.record(2, [&tape, p, x, squares, o, z, c, tokens, nd, count] {
    auto& device = tape.device();
    const R* dc = tape.grad(c);
    const auto darg = tape.shared_buffer(std::size_t(count * tokens)), dz = tape.shared_buffer(std::size_t(count * tokens));
    const auto dnew = tape.shared_buffer(std::size_t(tokens));
    detail::with_n(o.n, [&]<int n>() {
      device.template for_packs<R>(std::size_t(tokens), MhcBackward<n, R>{detail::mhc_inputs<n>(p, z, squares, nd, o), dc, darg.get(), dz.get(), dnew.get()});
    });
    if (const auto ds = tape.accumulate(squares); ds.g) device.template for_packs<R>(std::size_t(tokens), Scale<R>{dnew.get(), ds.g, R(1), ds.add});
    // d bias_k = sum_t darg_kt;  d alpha = sum over its k, t of darg_kt m_kt,  m = z / rms
    const auto sums = tape.shared_buffer(std::size_t(2 * count));
    {
      const auto timing = device.timed(Section::elementwise, 8.0 * count * tokens, 2.0 * count * tokens * sizeof(R));
      const MhcSums<R> of_tokens{darg.get(), z.value(), squares.value(), int(count), double(nd), o.eps, sums.get()};
      device.template for_tiles<double>(int(count), 1, int(tokens), of_tokens);
    }
    const auto add_total = [&](Var<Device, R> to, std::int64_t first, std::int64_t last) {
      device.for_elements(1, AddTotal<R>{sums.get() + count + first, tape.sum_of_grads_always(to), int(last - first)});
    };
    device.for_elements(std::size_t(count), AddEach<R>{sums.get(), tape.sum_of_grads_always(p.bias)});
    add_total(p.alpha_pre, 0, o.n);
    add_total(p.alpha_post, o.n, 2 * o.n);
    add_total(p.alpha_res, 2 * o.n, count);
    const auto dz_in = tape.input(dz.get(), count * tokens);
    if (const auto g = tape.accumulate(p.phi); g.g)
      device.gemm(GemmArgs<R>{Op::Transpose, Op::Transpose, nd, count, tokens, tape.operand(x), nd, dz_in.operand(), tokens}, g.beta(), g.g, count);
    if (const auto g = tape.accumulate(x); g.g)
      device.gemm(GemmArgs<R>{Op::Transpose, Op::Transpose, tokens, nd, count, dz_in.operand(), tokens, tape.operand(p.phi), count}, g.beta(), g.g, nd);
  });
  return c;
}

namespace detail {
// x (N, n d), c (n^2 + 2 n, N)
template <class Device, class R> void check_mhc_streams(const char* op, Var<Device, R> x, Var<Device, R> c, int n) {
  if (n < 1 || x.cols() % n != 0) fail<shape_error>("{}: x has shape {}, needs columns for {} streams", op, x.shape().text(), n);
  check_shape(op, "c", c.shape(), {std::int64_t(n) * n + 2 * n, x.rows()});
}
}  // namespace detail

// ---- reading and writing: fused for the numbers of streams that programs are compiled for, else step by step
template <class Device, class R> Var<Device, R> mhc_read(Var<Device, R> x, Var<Device, R> c, Var<Device, R> gain, int n, double norm_eps) {
  const std::int64_t tokens = x.rows();
  detail::check_mhc_streams("mhc_read", x, c, n);
  check_shape("mhc_read", "gain", gain.shape(), {x.cols() / n});
  return detail::with_streams(
      n, [&]<int k>() { return apply<MhcRead<k>, Device, R>({norm_eps}, x.cols() / n, {gain}, {x, c})[0]; },
      [&] { return rms_norm(mix_streams(c, {0, 1, tokens, 0}, 1, x, n), gain, norm_eps); });
}
template <class Device, class R>
std::array<Var<Device, R>, 2> mhc_write(Var<Device, R> x, Var<Device, R> c, Var<Device, R> y, int n) {
  const std::int64_t tokens = x.rows();
  detail::check_mhc_streams("mhc_write", x, c, n);
  check_shape("mhc_write", "y", y.shape(), {tokens, x.cols() / n});
  return detail::with_streams(
      n, [&]<int k>() { return apply<MhcWrite<k>, Device, R>({}, y.cols(), {}, {x, c, y}); },
      [&]() -> std::array<Var<Device, R>, 2> {
        const auto mixed = mix_streams(c, {2 * n * tokens, 1, tokens, n * tokens}, n, x, n);  // destination o: row o of res
        const auto next = write_streams(c, {n * tokens, 1, tokens, 0}, mixed, y, n);
        return {next, stream_squares(next)};
      });
}

}  // namespace depthbench
