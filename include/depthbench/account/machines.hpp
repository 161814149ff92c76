// The least time that a machine's peak numbers allow. An estimate from data sheets, never a measurement: real programs
// reach a part of it (30 to 60 % where matrices are large).
#pragma once
#include <array>
#include <string_view>

#include "depthbench/account/cost.hpp"

namespace depthbench {

struct Machine {
  std::string_view name, described;
  double flops_per_s, bytes_per_s, memory_bytes;  // of dense matrix products; of memory; 0: not given
  std::string_view source;
};

inline constexpr std::array<Machine, 3> machines{{
    {"h200", "NVIDIA H200 SXM, bfloat16", 989e12, 4.8e12, 141e9,
     "NVIDIA H200 Tensor Core GPU data sheet (2024): 1,979 TFLOPS of BF16 with sparsity, half of it dense; 4.8 TB/s; 141 GB"},
    {"a100", "NVIDIA A100 80GB SXM, bfloat16", 312e12, 2.039e12, 80e9,
     "NVIDIA A100 Tensor Core GPU data sheet (2021): 312 TFLOPS of BF16, dense; 2,039 GB/s; 80 GB"},
    {"laptop", "4 cores with AVX2 at 3 GHz, DDR4-3200 on two channels, float32", 384e9, 51.2e9, 0,
     "arithmetic: 4 cores x 3e9 x 2 FMA units x 8 floats x 2; 2 x 8 bytes x 3.2e9"},
}};

struct TimeEstimate {
  double matrix_s = 0;  // products and attention at the peak rate
  double rest_s = 0;    // bytes of everything else at the peak bandwidth
  double step_s() const { return matrix_s + rest_s; }
};

// Of one training step of the batch, activations kept.
inline TimeEstimate time_at_least(const Cost& cost, double flops_per_s, double bytes_per_s) {
  const auto matrix = [](const Work& w) { return w.body() + w.head + w.residual_gemm + w.residual_attention; };
  const auto rest = [&](const Work& w) { return w.total() - matrix(w); };
  const double n = double(cost.batch);
  return {n * (matrix(cost.flops.forward) + matrix(cost.flops.backward)) / flops_per_s,
          (n * (rest(cost.bytes.forward) + rest(cost.bytes.backward)) + cost.optimizer_bytes) / bytes_per_s};
}

}  // namespace depthbench
