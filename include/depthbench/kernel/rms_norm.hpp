// y = g * x / sqrt(mean_c x_c^2 + eps)                        Zhang & Sennrich 2019, eq. 4 (eps inside the root)
#pragma once
#include "depthbench/kernel/program.hpp"

namespace depthbench {

struct RmsNorm {
  using params = Leaves<Channels<1>>;               // g
  using tokens = Leaves<Rows<1>, OutRows<1>>;       // x -> y
  double eps, factor = 1;                           // factor: a plain number on the result
  DB_FN void operator()(auto&, auto& g, auto& x, auto& y) const {
    auto u = scaled(factor * rsqrt(sum_squares(x) / x.dim() + eps), x, g);  // (1, d)
    y = u;
  }
};

// The residual addition and the next norm in one pass:   x' = x + y,   u = factor * rms_norm(x'; g)
struct AddRmsNorm {
  using params = Leaves<Channels<1>>;                               // g
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>, OutRows<1>>;  // x, y -> x', u
  double eps, factor = 1;
  DB_FN void operator()(auto&, auto& g, auto& x, auto& y, auto& x_next, auto& u) const {
    auto s = rows(same(x) + same(y));                                           // (1, d)
    auto v = scaled(factor * rsqrt(sum_squares(s) / s.dim() + eps), s, g);      // (1, d)
    x_next = s;
    u = v;
  }
};

// Norm of the branch's output before it is added:   x' = x + rms_norm(y; outer),   u = rms_norm(x'; g)
struct SandwichWrite {
  using params = Leaves<Channels<1>>;                   // outer
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>>;  // x, y -> x'
  double eps;
  DB_FN void operator()(auto&, auto& outer, auto& x, auto& y, auto& x_next) const {
    auto v = scaled(rsqrt(sum_squares(y) / y.dim() + eps), y, outer);     // (1, d)
    x_next = same(x) + same(v);
  }
};
struct SandwichAdvance {
  using params = Leaves<Channels<1>, Channels<1>>;                  // outer, g
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>, OutRows<1>>;  // x, y -> x', u
  double eps;
  DB_FN void operator()(auto&, auto& outer, auto& g, auto& x, auto& y, auto& x_next, auto& u) const {
    auto v = scaled(rsqrt(sum_squares(y) / y.dim() + eps), y, outer);     // (1, d)
    auto s = rows(same(x) + same(v));                                     // (1, d)
    auto w = scaled(rsqrt(sum_squares(s) / s.dim() + eps), s, g);         // (1, d)
    x_next = s;
    u = w;
  }
};

// Norm of the weighted sum:   x' = rms_norm(alpha x + y; outer),   u = rms_norm(x'; g)
struct PostNormWrite {
  using params = Leaves<Channels<1>>;                   // outer
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>>;  // x, y -> x'
  double eps, alpha;
  DB_FN void operator()(auto&, auto& outer, auto& x, auto& y, auto& x_next) const {
    auto s = rows(times(alpha, x) + same(y));                             // (1, d)
    auto v = scaled(rsqrt(sum_squares(s) / s.dim() + eps), s, outer);     // (1, d)
    x_next = v;
  }
};
struct PostNormAdvance {
  using params = Leaves<Channels<1>, Channels<1>>;                  // outer, g
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>, OutRows<1>>;  // x, y -> x', u
  double eps, alpha;
  DB_FN void operator()(auto&, auto& outer, auto& g, auto& x, auto& y, auto& x_next, auto& u) const {
    auto s = rows(times(alpha, x) + same(y));                             // (1, d)
    auto v = scaled(rsqrt(sum_squares(s) / s.dim() + eps), s, outer);     // (1, d)
    auto w = scaled(rsqrt(sum_squares(v) / v.dim() + eps), v, g);         // (1, d)
    x_next = v;
    u = w;
  }
};

}  // namespace depthbench
