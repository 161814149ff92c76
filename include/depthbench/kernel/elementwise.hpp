// Elementwise bodies, a pack at a time: SwiGLU and sums. For accounts, of one number: moves(), arrays read and written;
// flops(), operations: each +, *, / and function counts as one, so a sigmoid as 4.
#pragma once
#include "depthbench/kernel/pack_math.hpp"

namespace depthbench {

// h = silu(a) * b,   silu(a) = a / (1 + e^-a)                    Shazeer 2020, eq. 6
template <class R> struct SwigluForward {
  const R *a, *b;
  R* h;
  int moves() const { return 3; }
  int flops() const { return 6; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    const P x = load_pack<P>(a + i, left);
    store_pack(h + i, x * math::sigmoid(x) * load_pack<P>(b + i, left), left);
  }
};
// da = dh b s (1 + a (1 - s)),   db = dh a s,   s = sigmoid(a)
template <class R> struct SwigluBackward {
  const R *a, *b, *dh;
  R *da, *db;
  bool add_a, add_b;
  int moves() const { return 5 + add_a + add_b; }
  int flops() const { return 12 + add_a + add_b; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    const P x = load_pack<P>(a + i, left), g = load_pack<P>(dh + i, left), one = P::splat(R(1));
    const P s = math::sigmoid(x);
    P ga = g * load_pack<P>(b + i, left) * s * (one + x * (one - s)), gb = g * x * s;
    if (da) {  // written before db is read: a and b may be one
      if (add_a) ga = ga + load_pack<P>(da + i, left);
      store_pack(da + i, ga, left);
    }
    if (db) {
      if (add_b) gb = gb + load_pack<P>(db + i, left);
      store_pack(db + i, gb, left);
    }
  }
};
// y = a + b
template <class R> struct AddForward {
  const R *a, *b;
  R* y;
  int moves() const { return 3; }
  int flops() const { return 1; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    store_pack(y + i, load_pack<P>(a + i, left) + load_pack<P>(b + i, left), left);
  }
};
// y (+)= a b
template <class R> struct Product {
  const R *a, *b;
  R* y;
  bool add;
  int moves() const { return 3 + add; }
  int flops() const { return 1 + add; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    P v = load_pack<P>(a + i, left) * load_pack<P>(b + i, left);
    if (add) v = v + load_pack<P>(y + i, left);
    store_pack(y + i, v, left);
  }
};
// y (+)= c x
template <class R> struct Scale {
  const R* x;
  R* y;
  R c;
  bool add;
  int moves() const { return 2 + add; }
  int flops() const { return 1 + add; }
  template <class P> DB_FN void at(std::size_t i, int left) const {
    P v = P::splat(c) * load_pack<P>(x + i, left);
    if (add) v = v + load_pack<P>(y + i, left);
    store_pack(y + i, v, left);
  }
};
// The same, c being in the device's memory.
template <class R> struct ScaleBy {
  const R* x;
  R* y;
  const R* c;
  bool add;
  int moves() const { return 2 + add; }
  int flops() const { return 1 + add; }
  template <class P> DB_FN void at(std::size_t i, int left) const { Scale<R>{x, y, *c, add}.template at<P>(i, left); }
};

}  // namespace depthbench
