// An array as matrix products read it: itself or, where the device's products are in bfloat16, a copy that is rounded once and
// lives as long as this.
//   const ProductInput<Cpu, float> x(cpu, p, n);      cpu.gemm({..., x.operand(), ...})      twice, rounded once
#pragma once
#include <cstddef>
#include <type_traits>

#include "depthbench/backend/gemm.hpp"
#include "depthbench/core/profile.hpp"

namespace depthbench {

template <class Device, class R> class ProductInput {
 public:
  ProductInput(Device& device, const R* p, std::size_t n) : device_(&device), p_(p), n_(n) {
    if constexpr (std::is_same_v<R, float>)
      if (device.reads_bf16()) {
        const auto timing = device.timed(Section::gemm, 0, 0);
        rounded_ = device.memory().template acquire<bfloat16>(n);
        device.round_rows(p, std::int64_t(n), 1, std::int64_t(n), rounded_);
      }
  }
  ~ProductInput() { if (rounded_) device_->memory().release(rounded_, n_ * sizeof(bfloat16)); }
  ProductInput(const ProductInput&) = delete;
  ProductInput& operator=(const ProductInput&) = delete;

  Operand<R> operand() const { return {p_, rounded_}; }

 private:
  Device* device_;
  const R* p_;
  std::size_t n_;
  bfloat16* rounded_ = nullptr;
};

}  // namespace depthbench
