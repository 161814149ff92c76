// rms_norm:      u = factor * g * x / sqrt(mean_c x_c^2 + eps)      x (N, d)   g (d)   ->   u (N, d)
// add_rms_norm:  x' = x + y,   u = rms_norm(x'; g)                  x, y (N, d)        ->   x', u (N, d)
//   cost: reads N d (2 N d), writes N d (2 N d) elements; saves nothing but its inputs
#pragma once
#include "depthbench/kernel/rms_norm.hpp"
#include "depthbench/op/row_program.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> rms_norm(Var<Device, R> x, Var<Device, R> g, double eps, double factor = 1) {
  check_shape("rms_norm", "g", g.shape(), {x.cols()});
  return apply<RmsNorm, Device, R>(RmsNorm{eps, factor}, x.cols(), {g}, {x})[0];
}

template <class Device, class R>
std::array<Var<Device, R>, 2> add_rms_norm(Var<Device, R> x, Var<Device, R> y, Var<Device, R> g, double eps, double factor = 1) {
  check_shape("add_rms_norm", "y", y.shape(), x.shape());
  check_shape("add_rms_norm", "g", g.shape(), {x.cols()});
  return apply<AddRmsNorm, Device, R>(AddRmsNorm{eps, factor}, x.cols(), {g}, {x, y});
}

// sandwich_write:    x' = x + rms_norm(y; outer)
// sandwich_advance:  the same, and u = rms_norm(x'; g)
template <class Device, class R>
Var<Device, R> sandwich_write(Var<Device, R> x, Var<Device, R> y, Var<Device, R> outer, double eps) {
  check_shape("sandwich_write", "y", y.shape(), x.shape());
  return apply<SandwichWrite, Device, R>({eps}, x.cols(), {outer}, {x, y})[0];
}
template <class Device, class R>
std::array<Var<Device, R>, 2> sandwich_advance(Var<Device, R> x, Var<Device, R> y, Var<Device, R> outer, Var<Device, R> g, double eps) {
  check_shape("sandwich_advance", "y", y.shape(), x.shape());
  return apply<SandwichAdvance, Device, R>({eps}, x.cols(), {outer, g}, {x, y});
}

// post_norm_write:    x' = rms_norm(alpha x + y; outer)
// post_norm_advance:  the same, and u = rms_norm(x'; g)
template <class Device, class R>
Var<Device, R> post_norm_write(Var<Device, R> x, Var<Device, R> y, Var<Device, R> outer, double eps, double alpha) {
  check_shape("post_norm_write", "y", y.shape(), x.shape());
  return apply<PostNormWrite, Device, R>({eps, alpha}, x.cols(), {outer}, {x, y})[0];
}
template <class Device, class R>
std::array<Var<Device, R>, 2> post_norm_advance(Var<Device, R> x, Var<Device, R> y, Var<Device, R> outer, Var<Device, R> g, double eps, double alpha) {
  check_shape("post_norm_advance", "y", y.shape(), x.shape());
  return apply<PostNormAdvance, Device, R>({eps, alpha}, x.cols(), {outer, g}, {x, y});
}

}  // namespace depthbench
