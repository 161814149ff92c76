// add_layer_norm:  x' = g * (s - mean s) / sqrt(var s + eps),  s = alpha x + y        x, y (N, d)   g (d)   ->   x' (N, d)
//   cost: reads 2 N d, writes N d elements; saves nothing but its inputs
#pragma once
#include "depthbench/kernel/layer_norm.hpp"
#include "depthbench/op/row_program.hpp"

namespace depthbench {

template <class Device, class R>
Var<Device, R> add_layer_norm(Var<Device, R> x, Var<Device, R> y, Var<Device, R> g, double eps, double alpha) {
  check_shape("add_layer_norm", "y", y.shape(), x.shape());
  check_shape("add_layer_norm", "g", g.shape(), {x.cols()});
  return apply<AddLayerNorm, Device, R>({eps, alpha}, x.cols(), {g}, {x, y})[0];
}

}  // namespace depthbench
