// An input of a bf16 product, x (rows, cols): what its owner has rounded already or, where nobody has, a dense copy that
// lives as long as this.
//   T: what the library reads: bfloat16, or float where it knows no other and gets the rounded numbers as such
#pragma once
#include <cstddef>
#include <type_traits>

#include "depthbench/backend/gemm.hpp"

namespace depthbench {

template <class Device, class T> class RoundedOperand {
 public:
  RoundedOperand(Device& device, Operand<float> x, std::int64_t ld_of_x, std::int64_t rows, std::int64_t cols) : ld(ld_of_x), device_(&device) {
    if constexpr (std::is_same_v<T, bfloat16>) p = x.rounded;
    if (p) return;
    made_ = std::size_t(rows * cols);
    p = copy_ = device.memory().template acquire<T>(made_);
    device.round_rows(x.p, ld_of_x, rows, cols, copy_);
    ld = cols;
  }
  ~RoundedOperand() { if (copy_) device_->memory().release(copy_, made_ * sizeof(T)); }
  RoundedOperand(const RoundedOperand&) = delete;
  RoundedOperand& operator=(const RoundedOperand&) = delete;

  const T* p = nullptr;
  std::int64_t ld;

 private:
  Device* device_;
  T* copy_ = nullptr;
  std::size_t made_ = 0;
};

// Both inputs of a product.
template <class Device, class T> struct RoundedOperands {
  RoundedOperand<Device, T> a, b;
  RoundedOperands(Device& device, const GemmArgs<float>& g)
      : a(device, g.a, g.lda, g.op_a == Op::None ? g.m : g.k, g.op_a == Op::None ? g.k : g.m),
        b(device, g.b, g.ldb, g.op_b == Op::None ? g.k : g.n, g.op_b == Op::None ? g.n : g.k) {}
  GemmArgs<T> args(const GemmArgs<float>& g) const { return {g.op_a, g.op_b, g.m, g.n, g.k, a.p, a.ld, b.p, b.ld}; }
};

}  // namespace depthbench
