// y = g * x / sqrt(mean_c x_c^2 + eps)                        Zhang & Sennrich 2019, eq. 4 (eps inside the root)
#pragma once
#include "depthbench/kernel/program.hpp"

namespace depthbench {

struct RmsNorm {
  using params = Leaves<Channels<1>>;               // g
  using tokens = Leaves<Rows<1>, OutRows<1>>;       // x -> y
  double eps;
  DB_FN void operator()(auto&, auto& g, auto& x, auto& y) const {
    auto u = scaled(rsqrt(sum_squares(x) / x.dim() + eps), x, g);  // (1, d)
    y = u;
  }
};

// The residual addition and the next norm in one pass:   x' = x + y,   u = rms_norm(x'; g)
struct AddRmsNorm {
  using params = Leaves<Channels<1>>;                               // g
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>, OutRows<1>>;  // x, y -> x', u
  double eps;
  DB_FN void operator()(auto&, auto& g, auto& x, auto& y, auto& x_next, auto& u) const {
    auto s = rows(same(x) + same(y));                                   // (1, d)
    auto v = scaled(rsqrt(sum_squares(s) / s.dim() + eps), s, g);       // (1, d)
    x_next = s;
    u = v;
  }
};

}  // namespace depthbench
