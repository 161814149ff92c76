// Row-major matrix products behind one small interface:
//   C (m, n) = op(A) (m, k) . op(B) (k, n) + beta C
// A Gemm is a type with static functions `product(...)` for float and double, and, where it says `bf16`, for bfloat16
// inputs with float accumulation; each call runs on the calling thread only. Threads are ours: see cpu.hpp.
//   OneDnnGemm   oneDNN: the fastest packaged one measured, and bfloat16
//   CblasGemm    any CBLAS
//   PlainGemm    loops of our own: no library needed, and the oracle in tests
#pragma once
#include <cstdint>

#include "depthbench/core/dtype.hpp"
#include "depthbench/kernel/tile_gemm.hpp"

#if DEPTHBENCH_HAS_ONEDNN
#include "depthbench/backend/held_signals.hpp"
#include "depthbench/backend/onednn_bf16.hpp"
extern "C" void omp_set_num_threads(int);
#endif
#if DEPTHBENCH_HAS_CBLAS
#include <cblas.h>
#endif

namespace depthbench {

enum class Op { None, Transpose };
enum class Products { fp32, bf16 };  // the type of the inputs; sums are float in both

// What a product reads: the numbers at p and, where somebody has rounded them already, the same as bfloat16.
template <class T> struct Operand {
  const T* p;
  const bfloat16* rounded;

  Operand(const T* numbers = nullptr, const bfloat16* in_bf16 = nullptr) : p(numbers), rounded(in_bf16) {}
  operator const T*() const { return p; }
  Operand& operator+=(std::int64_t n) {
    p += n;
    if (rounded) rounded += n;
    return *this;
  }
  friend Operand operator+(Operand x, std::int64_t n) { return x += n; }
};

template <class T> struct GemmArgs {
  Op op_a, op_b;
  std::int64_t m, n, k;
  Operand<T> a;
  std::int64_t lda;
  Operand<T> b;
  std::int64_t ldb;
  double flops() const { return 2.0 * double(m) * double(n) * double(k); }
  double bytes(bool adds) const { return (double(m) * double(k) + double(k) * double(n) + (adds ? 2.0 : 1.0) * double(m) * double(n)) * sizeof(T); }
};

struct PlainGemm {
  static constexpr const char* name = "built-in loops";
  static constexpr bool bf16 = false;
  template <class R> static void product(const GemmArgs<R>& g, R beta, R* c, std::int64_t ldc) {
    tile_gemm_blocked(g.op_a == Op::Transpose, g.op_b == Op::Transpose, g.m, g.n, g.k, g.a.p, g.lda, g.b.p, g.ldb, beta, c, ldc);
  }
};

#if DEPTHBENCH_HAS_CBLAS
struct CblasGemm : PlainGemm {
  static constexpr const char* name = "CBLAS";
  using PlainGemm::product;
  static CBLAS_TRANSPOSE of(Op op) { return op == Op::None ? CblasNoTrans : CblasTrans; }
  static void product(const GemmArgs<float>& g, float beta, float* c, std::int64_t ldc) {
    cblas_sgemm(CblasRowMajor, of(g.op_a), of(g.op_b), int(g.m), int(g.n), int(g.k), 1.f, g.a, int(g.lda), g.b, int(g.ldb), beta, c, int(ldc));
  }
  static void product(const GemmArgs<double>& g, double beta, double* c, std::int64_t ldc) {
    cblas_dgemm(CblasRowMajor, of(g.op_a), of(g.op_b), int(g.m), int(g.n), int(g.k), 1., g.a, int(g.lda), g.b, int(g.ldb), beta, c, int(ldc));
  }
};
#endif

#if DEPTHBENCH_HAS_ONEDNN
#if DEPTHBENCH_HAS_CBLAS
using Fp64Gemm = CblasGemm;  // oneDNN has no double product
#else
using Fp64Gemm = PlainGemm;
#endif
struct OneDnnGemm : Fp64Gemm {
  static constexpr const char* name = "oneDNN";
  static constexpr bool bf16 = true;
  using Fp64Gemm::product;
  static void product(const GemmArgs<bfloat16>& g, float beta, float* c, std::int64_t ldc) {
    const HeldSignals held;
    omp_set_num_threads(1);
    onednn::matmul(g.op_a == Op::Transpose, g.op_b == Op::Transpose, g.m, g.n, g.k, g.a, g.lda, g.b, g.ldb, beta, c, ldc);
  }
  static void product(const GemmArgs<float>& g, float beta, float* c, std::int64_t ldc) {
    if (g.k == 0) return PlainGemm::product(g, beta, c, ldc);  // oneDNN leaves C as it is even for beta = 0
    const HeldSignals held;
    omp_set_num_threads(1);  // Debian's oneDNN is built with OpenMP: this call, on this thread, must not start a second pool
    const auto status = dnnl_sgemm(g.op_a == Op::None ? 'N' : 'T', g.op_b == Op::None ? 'N' : 'T', g.m, g.n, g.k, 1.f, g.a, g.lda, g.b, g.ldb, beta, c, ldc);
    if (status != dnnl_success) fail<error>("matmul: oneDNN refused a product of ({}, {}) by ({}, {}), status {}", g.m, g.k, g.k, g.n, int(status));
  }
};
using DefaultGemm = OneDnnGemm;
#elif DEPTHBENCH_HAS_CBLAS
using DefaultGemm = CblasGemm;
#else
using DefaultGemm = PlainGemm;
#endif

}  // namespace depthbench
