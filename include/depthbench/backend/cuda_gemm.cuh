// Matrix products by cuBLASLt, row-major: C (m, n) = op(A) (m, k) . op(B) (k, n) + beta C
//   inputs float (fp32 or tf32), double, or bfloat16 with float output; sums in float, of double in double
//   deterministic: no reduction that adds in place; one algorithm a shape, kept after the first use
// cuBLASLt is column-major: it is asked for C^T = op(B)^T op(A)^T.
#pragma once
#include <array>
#include <bit>
#include <map>
#include <type_traits>

#include "depthbench/backend/cuda_check.cuh"
#include "depthbench/backend/gemm.hpp"

namespace depthbench::cuda {

class MatrixProducts {
 public:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  // workspace: workspace_bytes of device memory, the caller's
  explicit MatrixProducts(void* workspace) : workspace_(workspace) { check(cublasLtCreate(&handle_), "cublasLtCreate"); }
  ~MatrixProducts() {
    for (auto& [key, plan] : plans_) plan.destroy();
    cublasLtDestroy(handle_);
  }
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  void allow_tf32(bool yes) { tf32_ = yes; }

  template <class T, class R> void product(cudaStream_t stream, const GemmArgs<T>& g, R beta, R* c, std::int64_t ldc) {
    const R one = 1;
    const Plan& p = plan(g, beta, c, ldc);
    check(cublasLtMatmul(handle_, p.operation, &one, g.b, p.b, g.a, p.a, &beta, c, p.c, c, p.c, &p.algorithm, workspace_,
                         workspace_bytes, stream), "matrix product");
  }

 private:
  struct Plan {
    cublasLtMatmulDesc_t operation{};
    cublasLtMatrixLayout_t a{}, b{}, c{};
    cublasLtMatmulAlgo_t algorithm{};
    void destroy() {
      for (auto layout : {a, b, c}) cublasLtMatrixLayoutDestroy(layout);
      cublasLtMatmulDescDestroy(operation);
    }
  };
  using Key = std::array<std::int64_t, 9>;

  template <class T> static constexpr cudaDataType_t type() {
    if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
    else if constexpr (std::is_same_v<T, float>) return CUDA_R_32F;
    else return CUDA_R_16BF;
  }
  static unsigned alignment(const void* p) {  // in bytes, 256 at most
    const auto bits = reinterpret_cast<std::uintptr_t>(p) | 256;
    return unsigned(bits & -bits);
  }
  template <class T> void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, T value) {
    check(cublasLtMatmulDescSetAttribute(d, what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  template <class T> void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t what, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(p, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  }

  template <class T, class R> const Plan& plan(const GemmArgs<T>& g, R beta, const R* c, std::int64_t ldc) {
    const unsigned align_a = alignment(g.a), align_b = alignment(g.b), align_c = alignment(c);
    const std::int64_t flags =
        type<T>() | (g.op_a == Op::Transpose) << 8 | (g.op_b == Op::Transpose) << 9 | tf32_ << 10 | (beta != R(0)) << 11;
    const Key key{flags, g.m, g.n, g.k, g.lda, g.ldb, ldc, align_a | std::int64_t(align_b) << 16, align_c};
    const auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;

    Plan p;
    const auto compute = std::is_same_v<R, double> ? CUBLAS_COMPUTE_64F
                         : tf32_ && std::is_same_v<T, float> ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescCreate(&p.operation, compute, type<R>()), "cublasLtMatmulDescCreate");
    set(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, g.op_b == Op::Transpose ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, g.op_a == Op::Transpose ? CUBLAS_OP_T : CUBLAS_OP_N);
    const auto layout = [](cudaDataType_t t, Op op, std::int64_t rows, std::int64_t cols, std::int64_t ld) {  // of op's result
      cublasLtMatrixLayout_t l{};
      if (op == Op::Transpose) std::swap(rows, cols);
      check(cublasLtMatrixLayoutCreate(&l, t, std::uint64_t(cols), std::uint64_t(rows), ld), "cublasLtMatrixLayoutCreate");
      return l;
    };
    p.a = layout(type<T>(), g.op_a, g.m, g.k, g.lda);
    p.b = layout(type<T>(), g.op_b, g.k, g.n, g.ldb);
    p.c = layout(type<R>(), Op::None, g.m, g.n, ldc);

    cublasLtMatmulPreference_t preference{};
    check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        std::uint32_t(CUBLASLT_REDUCTION_SCHEME_MASK & ~CUBLASLT_REDUCTION_SCHEME_INPLACE));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t(align_b));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t(align_a));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t(align_c));
    set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t(align_c));
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    const auto status = cublasLtMatmulAlgoGetHeuristic(handle_, p.operation, p.b, p.a, p.c, p.c, preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0)
      fail<cuda_error>("cuda: matmul: cuBLASLt has no algorithm for ({}, {}) by ({}, {}): {}", g.m, g.k, g.k, g.n,
                       cublasLtGetStatusString(status));
    p.algorithm = best.algo;
    return plans_.emplace(key, p).first->second;
  }

  cublasLtHandle_t handle_{};
  void* workspace_;
  bool tf32_ = false;
  std::map<Key, Plan> plans_;
};

}  // namespace depthbench::cuda
