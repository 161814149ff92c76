// LayerNorm (Ba et al. 2016) without bias, of a weighted sum:   x' = g * (s - mean s) / sqrt(var s + eps),   s = alpha x + y
// var divides by d; eps is inside the root.
#pragma once
#include "depthbench/kernel/program.hpp"

namespace depthbench {

// centred(H): h_i minus its mean over the channels
template <class H> struct Centred : OwnRows<typename H::Team, H::rows, H::mode> {
  using Base = OwnRows<typename H::Team, H::rows, H::mode>;
  using Pack = typename Base::Pack;
  using R = typename Base::R;
  H& h;
  DB_FN explicit Centred(H& x) : Base(x.team), h(x) {
    [[maybe_unused]] const auto norm = norm_scope(h.team);
    DB_UNROLL for (int i = 0; i < H::rows; ++i) {
      const Pack m = Pack::splat(mean([&](int p) { return h.value(i, p); }));
      DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) this->v[i][p] = inside(h.value(i, p) - m, p);
    }
  }
  DB_FN ~Centred() {
    if constexpr (H::mode == Mode::Bwd) {
      [[maybe_unused]] const auto norm = norm_scope(h.team);
      DB_UNROLL for (int i = 0; i < H::rows; ++i) {
        const Pack m = Pack::splat(mean([&](int p) { return this->grad(i, p); }));
        DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) h.set_grad(i, p, h.grad(i, p) + this->grad(i, p) - m);
      }
      h.touched();
    }
  }

 private:
  template <class F> DB_FN R mean(F row) {
    auto a = Base::Team::acc0();
    const Pack one = Pack::splat(1);
    DB_UNROLL_SIMT for (int p = 0; p < h.team.packs(); ++p) Base::Team::fma(a, row(p), one);
    R part[1] = {Base::Team::hsum(a)}, sum[1];
    h.team.sum(part, sum);
    return h.team.lanes().get(sum, 0) / R(h.team.d);
  }
  // Channels beyond the row stay zero: they are part of no sum.
  DB_FN Pack inside(Pack x, int p) const {
    const int left = h.left(p);
    DB_UNROLL for (int i = 0; i < Pack::width; ++i) if (i >= left) x.set(i, R(0));
    return x;
  }
};
template <RowsNode H> DB_FN auto centred(H& h) { return Centred<H>(h); }

struct AddLayerNorm {
  using params = Leaves<Channels<1>>;                   // g
  using tokens = Leaves<Rows<1>, Rows<1>, OutRows<1>>;  // x, y -> x'
  double eps, alpha;
  DB_FN void operator()(auto&, auto& g, auto& x, auto& y, auto& x_next) const {
    auto s = rows(times(alpha, x) + same(y));                          // (1, d)
    auto c = centred(s);                                               // (1, d)
    auto v = scaled(rsqrt(sum_squares(c) / c.dim() + eps), c, g);      // (1, d)
    x_next = v;
  }
};

}  // namespace depthbench
