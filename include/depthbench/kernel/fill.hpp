// A constant, everywhere.
#pragma once
#include "depthbench/kernel/pack.hpp"

namespace depthbench {

// y = c
template <class R> struct Fill {
  R* y;
  R c;
  int flops() const { return 0; }
  int moves() const { return 1; }
  template <class P> DB_FN void at(std::size_t i, int left) const { store_pack(y + i, P::splat(c), left); }
};

}  // namespace depthbench
