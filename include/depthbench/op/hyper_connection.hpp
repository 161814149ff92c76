// Hyper-Connections on the tape. n streams side by side: x (N, n d), stream-major.
//   hyper_read     x -> u (N, d), c (N, n (n + 2))                        the branch input and the coefficients
//   hyper_write    x, c, y -> x'
//   hyper_advance  x, c, y -> x', u, c'                                   both, in one pass over the streams
// hyper_tables packs a connection's six parameters into the form the programs read:
//   w (n + 2, d) projections, table (n, n + 2), scale (n + 2) by column of the table
//   throw shape_error if an argument has another shape
//   cost per token, forward: read n d and written (n + 1) d elements (advance); about 2 n (2 n + 5) d FLOPs
#pragma once
#include "depthbench/kernel/hyper_connection.hpp"
#include "depthbench/op/linear.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/op/rms_norm.hpp"
#include "depthbench/op/row_program.hpp"
#include "depthbench/op/stream_mixing.hpp"

namespace depthbench {

template <class Device, class R> struct HyperTables {
  Var<Device, R> w, scale, table;
};

template <class Device, class R>
HyperTables<Device, R> hyper_tables(Var<Device, R> static_alpha, Var<Device, R> dynamic_alpha_proj, Var<Device, R> dynamic_alpha_scale,
                                    Var<Device, R> static_beta, Var<Device, R> dynamic_beta_proj, Var<Device, R> dynamic_beta_scale) {
  auto& tape = *static_alpha.tape;
  const int n = static_alpha.rows(), m = n + 1, d = dynamic_alpha_proj.rows();
  check_shape("hyper_tables", "static_alpha", static_alpha.shape(), {n, m});
  check_shape("hyper_tables", "dynamic_alpha_proj", dynamic_alpha_proj.shape(), {d, m});
  check_shape("hyper_tables", "static_beta", static_beta.shape(), {n});
  check_shape("hyper_tables", "dynamic_beta_proj", dynamic_beta_proj.shape(), {d});
  check_shape("hyper_tables", "dynamic_alpha_scale", dynamic_alpha_scale.shape(), {});
  check_shape("hyper_tables", "dynamic_beta_scale", dynamic_beta_scale.shape(), {});
  HyperTables<Device, R> t{tape.make({n + 2, d}), tape.make({n + 2}), tape.make({n, n + 2})};
  const std::array from{static_alpha, dynamic_alpha_proj, dynamic_alpha_scale, static_beta, dynamic_beta_proj, dynamic_beta_scale};
  tape.device().for_elements(std::size_t(d), HyperPack<R>{n, d, from[0].value(), from[1].value(), from[2].value(), from[3].value(),
                                                          from[4].value(), from[5].value(), t.w.out(), t.scale.out(), t.table.out()});
  tape.record(3, [&tape, t, from, n, d] {
    const R *dw = tape.grad(t.w), *dscale = tape.grad(t.scale), *dtable = tape.grad(t.table);
    std::array<R*, 6> g;
    for (int i = 0; i < 6; ++i) g[i] = tape.sum_of_grads_always(from[i]);
    tape.device().for_elements(std::size_t(d), HyperUnpackAdd<R>{n, d, dw, dscale, dtable, g[0], g[1], g[2], g[3], g[4], g[5]});
  });
  return t;
}

namespace detail {
// n, with everything that a read needs in its place: x (N, n d), gain (d)
template <class Device, class R>
int check_hyper_read(const char* op, const HyperTables<Device, R>& t, Var<Device, R> gain, Var<Device, R> x) {
  const int n = t.table.rows(), d = t.w.cols();
  check_shape(op, "w", t.w.shape(), {n + 2, d});
  check_shape(op, "scale", t.scale.shape(), {n + 2});
  check_shape(op, "table", t.table.shape(), {n, n + 2});
  check_shape(op, "gain", gain.shape(), {d});
  check_shape(op, "x", x.shape(), {x.rows(), std::int64_t(n) * d});
  return n;
}
// n, with everything that a write needs in its place: x (N, n d), c (N, n (n + 2)), y (N, d)
template <class Device, class R> int check_hyper_write(const char* op, Var<Device, R> x, Var<Device, R> c, Var<Device, R> y) {
  const std::int64_t d = y.cols(), n = d > 0 ? x.cols() / d : 0;
  if (n < 1 || n * d != x.cols() || y.rows() != x.rows() || y.shape().rank() != 2)
    fail<shape_error>("{}: y has shape {}, needs ({}, d) to match streams of d channels in x {}", op, y.shape().text(), x.rows(),
                      x.shape().text());
  check_shape(op, "c", c.shape(), {x.rows(), n * (n + 2)});
  return int(n);
}
}  // namespace detail

// c (N, n, n + 2): column j of the coefficients of every stream
inline MixLayout hyper_columns(int n, int first) { return {first, std::int64_t(n) * (n + 2), n + 2, 1}; }

// ---- the plain composition: any number of streams, and the oracle of the fused programs
template <class Device, class R>
std::array<Var<Device, R>, 2> hyper_read_plain(const HyperTables<Device, R>& t, Var<Device, R> gain, Var<Device, R> x, double stream_eps, double norm_eps) {
  auto& tape = *x.tape;
  const int n = detail::check_hyper_read("hyper_read", t, gain, x), d = t.w.cols();
  const auto each = reshape(x, {std::int64_t(x.rows()) * n, d});                                   // (N n, d)
  const auto c = hyper_coefficients(linear(rms_norm(each, ones(tape, d), stream_eps), t.w), t.scale, t.table);
  return {rms_norm(mix_streams(c, hyper_columns(n, 0), 1, x, n), gain, norm_eps), c};
}
template <class Device, class R> Var<Device, R> hyper_write_plain(Var<Device, R> x, Var<Device, R> c, Var<Device, R> y) {
  const int n = detail::check_hyper_write("hyper_write", x, c, y);
  return write_streams(c, hyper_columns(n, n + 1), mix_streams(c, hyper_columns(n, 1), n, x, n), y, n);
}

// ---- fused programs, for the numbers of streams they are compiled for
template <class Device, class R>
std::array<Var<Device, R>, 2> hyper_read(const HyperTables<Device, R>& t, Var<Device, R> gain, Var<Device, R> x, double stream_eps, double norm_eps) {
  return detail::with_streams(
      detail::check_hyper_read("hyper_read", t, gain, x),
      [&]<int n>() { return apply<HyperRead<n>, Device, R>({stream_eps, norm_eps}, t.w.cols(), {t.w, t.scale, t.table, gain}, {x}); },
      [&] { return hyper_read_plain(t, gain, x, stream_eps, norm_eps); });
}
template <class Device, class R> Var<Device, R> hyper_write(Var<Device, R> x, Var<Device, R> c, Var<Device, R> y) {
  return detail::with_streams(
      detail::check_hyper_write("hyper_write", x, c, y),
      [&]<int n>() { return apply<HyperWrite<n>, Device, R>({}, y.cols(), {}, {x, c, y})[0]; },
      [&] { return hyper_write_plain(x, c, y); });
}
template <class Device, class R>
std::array<Var<Device, R>, 3> hyper_advance(const HyperTables<Device, R>& t, Var<Device, R> gain, Var<Device, R> x, Var<Device, R> c,
                                            Var<Device, R> y, double stream_eps, double norm_eps) {
  check_shape("hyper_advance", "y", y.shape(), {x.rows(), t.w.cols()});
  detail::check_hyper_write("hyper_advance", x, c, y);
  return detail::with_streams(
      detail::check_hyper_read("hyper_advance", t, gain, x),
      [&]<int n>() { return apply<HyperAdvance<n>, Device, R>({stream_eps, norm_eps}, t.w.cols(), {t.w, t.scale, t.table, gain}, {x, c, y}); },
      [&]() -> std::array<Var<Device, R>, 3> {
        const auto next = hyper_write_plain(x, c, y);
        const auto [u, coefficients] = hyper_read_plain(t, gain, next, stream_eps, norm_eps);
        return {next, u, coefficients};
      });
}

}  // namespace depthbench
