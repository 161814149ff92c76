// rms_norm:      u = g * x / sqrt(mean_c x_c^2 + eps)               x (N, d)   g (d)   ->   u (N, d)
// add_rms_norm:  x' = x + y,   u = rms_norm(x'; g)                  x, y (N, d)        ->   x', u (N, d)
//   cost: reads N d (2 N d), writes N d (2 N d) elements; saves nothing but its inputs
#pragma once
#include "depthbench/kernel/rms_norm.hpp"
#include "depthbench/op/row_program.hpp"

namespace depthbench {

template <class Device, class R> Var<Device, R> rms_norm(Var<Device, R> x, Var<Device, R> g, double eps) {
  check_shape("rms_norm", "g", g.shape(), {x.cols()});
  return apply<RmsNorm, Device, R>(RmsNorm{eps}, x.cols(), {g}, {x})[0];
}

template <class Device, class R>
std::array<Var<Device, R>, 2> add_rms_norm(Var<Device, R> x, Var<Device, R> y, Var<Device, R> g, double eps) {
  check_shape("add_rms_norm", "y", y.shape(), x.shape());
  check_shape("add_rms_norm", "g", g.shape(), {x.cols()});
  return apply<AddRmsNorm, Device, R>(AddRmsNorm{eps}, x.cols(), {g}, {x, y});
}

}  // namespace depthbench
