// Every matrix library that is compiled in, against three loops.
#include "depthbench/backend/gemm.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "depthbench/backend/cpu.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

template <class T, class R> struct Product {
  GemmArgs<T> args;
  std::vector<T> a, b;
  std::int64_t ldc;
  Product(Op op_a, Op op_b, int m, int n, int k, int padding) {
    const int lda = (op_a == Op::None ? k : m) + padding, ldb = (op_b == Op::None ? n : k) + padding;
    a.resize(std::size_t(op_a == Op::None ? m : k) * lda + 1);
    b.resize(std::size_t(op_b == Op::None ? k : n) * ldb + 1);
    const auto x = random_numbers(a.size(), 1), y = random_numbers(b.size(), 2);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = T(float(x[i]));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = T(float(y[i]));
    args = {op_a, op_b, m, n, k, a.data(), std::max(lda, 1), b.data(), std::max(ldb, 1)};
    ldc = n + padding;
  }
  void round() {
    for (auto* x : {&a, &b}) for (T& v : *x) v = T(float(depthbench::bfloat16(float(v))));
  }
  std::vector<R> start(R beta) const {  // beta = 0 must not read what is there
    std::vector<R> c(std::size_t(args.m * ldc) + 1);
    for (std::size_t i = 0; i < c.size(); ++i)
      c[i] = beta == R(0) ? std::numeric_limits<R>::quiet_NaN() : R(i * 7919 % 23) - R(11);
    return c;
  }
  // The largest error, relative to the sizes that were added up.
  double error(const std::vector<R>& c, R beta) const {
    const auto before = start(beta);
    double worst = 0;
    const std::int64_t skip =
        args.m * args.n * args.k < 1000000 ? 1 : 13;  // large ones: a row or two of every tile
    for (std::int64_t i = 0; i < args.m; i += skip) for (std::int64_t j = 0; j < args.n; ++j) {
        double s = beta == R(0) ? 0 : double(beta) * double(before[std::size_t(i * ldc + j)]),
               size = std::fabs(s) + 1;
        for (std::int64_t p = 0; p < args.k; ++p) {
          const double x = double(args.op_a == Op::None ? a[std::size_t(i * args.lda + p)]
                                                        : a[std::size_t(p * args.lda + i)]) *
                           double(args.op_b == Op::None ? b[std::size_t(p * args.ldb + j)]
                                                        : b[std::size_t(j * args.ldb + p)]);
          s += x;
          size += std::fabs(x);
      }
      const double e = std::fabs(double(c[std::size_t(i * ldc + j)]) - s) / size;
      if (!(e <= worst)) worst = std::isnan(e) ? INFINITY : e;
    }
    for (std::int64_t i = 0; i < args.m; ++i) for (std::int64_t j = args.n; j < ldc; ++j) {  // padding stays
      const R x = c[std::size_t(i * ldc + j)], y = before[std::size_t(i * ldc + j)];
      if (!(x == y || (std::isnan(x) && std::isnan(y)))) worst = INFINITY;
    }
    return worst;
  }
};

constexpr std::array<std::array<int, 3>, 8> shapes{
    {{1, 1, 1}, {1, 7, 3}, {7, 1, 5}, {5, 3, 1}, {17, 33, 65}, {64, 48, 32}, {66, 70, 131}, {3, 200, 100}}};

template <class Gemm, class T, class R> void check_library(double limit) {
  for (const Op op_a : {Op::None, Op::Transpose}) for (const Op op_b : {Op::None, Op::Transpose})
      for (const auto& [m, n, k] : shapes)
        for (const R beta : {R(0), R(1), R(0.5)})
          for (const int padding : {0, 3}) {
            const Product<T, R> p(op_a, op_b, m, n, k, padding);
            auto c = p.start(beta);
            Gemm::product(p.args, beta, c.data(), p.ldc);
            CAPTURE(int(op_a), int(op_b), m, n, k, beta, padding);
            CHECK(p.error(c, beta) < limit);
          }
}

// Through the device, which cuts large products into tiles.
template <class Gemm, class R> void check_tiles(double limit, Products products = Products::fp32) {
  CpuDevice<Gemm> one(1), three(3);
  one.set_products(products);
  three.set_products(products);
  for (const Op op_a : {Op::None, Op::Transpose}) for (const Op op_b : {Op::None, Op::Transpose})
      for (const auto& [m, n, k] : {std::array{300, 90, 100},
                                    {90, 300, 100},
                                    {40, 500, 600},
                                    {1000, 33, 300},
                                    {257, 255, 1100},
                                    {5, 9, 0},
                                    {0, 4, 4},
                                    {4, 0, 4}})
        for (const R beta : {R(0), R(1)}) {
          if (k == 0 && products == Products::bf16) continue;
          Product<R, R> p(op_a, op_b, m, n, k, 2);
          auto c = p.start(beta), d = c;
          one.gemm(p.args, beta, c.data(), p.ldc);
          three.gemm(p.args, beta, d.data(), p.ldc);
          if (products == Products::bf16) p.round();
          CAPTURE(int(op_a), int(op_b), m, n, k, beta);
          CHECK(p.error(c, beta) < limit);
          CHECK(std::memcmp(c.data(), d.data(), c.size() * sizeof(R)) == 0);
        }
}

}  // namespace

TEST_CASE("gemm: the built-in loops", "[backend]") {
  check_library<PlainGemm, float, float>(1e-6);
  check_library<PlainGemm, double, double>(2e-15);
  check_tiles<PlainGemm, double>(2e-15);
}

TEST_CASE("gemm: CBLAS", "[backend]") {
#if DEPTHBENCH_HAS_CBLAS
  check_library<CblasGemm, float, float>(1e-6);
  check_library<CblasGemm, double, double>(2e-15);
  check_tiles<CblasGemm, double>(2e-15);
#else
  WARN("skipped: no CBLAS is compiled in");
#endif
}

TEST_CASE("gemm: oneDNN", "[backend]") {
#if DEPTHBENCH_HAS_ONEDNN
  check_library<OneDnnGemm, float, float>(1e-6);
  check_library<OneDnnGemm, double, double>(2e-15);
  check_library<OneDnnGemm, depthbench::bfloat16, float>(1e-6);  // OpenBLAS has a global type of that name
  check_tiles<OneDnnGemm, float>(1e-6);
#else
  WARN("skipped: no oneDNN is compiled in");
#endif
}

TEST_CASE("gemm: float arrays rounded to bfloat16 on the way, sums in float, whatever the library",
          "[backend]") {
  check_tiles<PlainGemm, float>(1e-6, Products::bf16);
  check_tiles<DefaultGemm, float>(1e-6, Products::bf16);
  Cpu cpu(2);  // doubles stay doubles
  cpu.set_products(Products::bf16);
  const Product<double, double> p(Op::None, Op::Transpose, 7, 5, 9, 0);
  auto c = p.start(0);
  cpu.gemm(p.args, 0.0, c.data(), p.ldc);
  CHECK(p.error(c, 0) < 2e-15);
  CHECK(cpu.memory().in_use() == 0);
}

TEST_CASE("gemm: the default is the fastest that is compiled in, and says so", "[backend]") {
#if DEPTHBENCH_HAS_ONEDNN
  CHECK(std::string(Cpu::gemm_name()) == "oneDNN");
#elif DEPTHBENCH_HAS_CBLAS
  CHECK(std::string(Cpu::gemm_name()) == "CBLAS");
#else
  CHECK(std::string(Cpu::gemm_name()) == "built-in loops");
#endif
}
