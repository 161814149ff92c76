#include "depthbench/kernel/tile_gemm.hpp"

#include <cmath>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;

namespace {

// Small whole numbers: every sum is exact, so results are compared for equality.
template <class R> R number(int i) { return R((i * 7919 + 13) % 17 - 8); }

// Differences of C (m, n) (+)= A (m, k) B (k, n) from three loops; padding around C must stay.
template <class R, Store St> int differences(int m, int n, int k, bool transposed) {
  const int ldb = n + cpu_pack<R>::width, ldc = n + 2 * cpu_pack<R>::width;
  std::vector<R> a(std::size_t(m) * k + 1), b(std::size_t(k + 1) * ldb), c(std::size_t(m + 2) * ldc, R(99));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = number<R>(int(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = number<R>(int(i) + 5);
  for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) c[std::size_t(i) * ldc + j] = R(i - j);
  const TileA<R> at{a.data(), transposed ? 1 : k, transposed ? m : 1};
  tile_gemm<St>(m, n, k, at, b.data(), ldb, c.data(), ldc);
  int wrong = 0;
  for (int i = 0; i < m + 2; ++i) for (int j = 0; j < ldc; ++j) {
    R needs = R(99);
    if (i < m && j < n) {
      needs = St == Store::Add ? R(i - j) : R(0);
      for (int p = 0; p < k; ++p)
        needs += a[std::size_t(i * at.row + p * at.col)] * b[std::size_t(p) * ldb + j];
    }
    wrong += c[std::size_t(i) * ldc + j] != needs;
  }
  return wrong;
}

template <class R> void every_remainder() {
  constexpr int W = cpu_pack<R>::width;
  int wrong = 0;
  for (int m = 0; m <= 37; ++m) for (int v = 0; v <= 9; ++v) for (const int k : {0, 1, 2, 7})
        wrong += differences<R, Store::Overwrite>(m, v * W, k, false) +
                 differences<R, Store::Add>(m, v * W, k, true);
  CHECK(wrong == 0);
  CHECK(differences<R, Store::Add>(48, 9 * W, 600, false) == 0);
}

template <class R> int blocked_differences(bool ta, bool tb, int m, int n, int k, R beta) {
  const int lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 2, ldc = n + 1;
  std::vector<R> a(std::size_t(ta ? k : m) * lda + 1), b(std::size_t(tb ? n : k) * ldb + 1),
      c(std::size_t(m) * ldc + 1);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = number<R>(int(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = number<R>(int(i) + 5);
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = beta == R(0) ? std::numeric_limits<R>::quiet_NaN() : number<R>(int(i) + 3);
  auto needs = c;
  for (int i = 0; i < m; ++i) for (int j = 0; j < n; ++j) {
    R s = 0;
    for (int p = 0; p < k; ++p)
      s += a[std::size_t(ta ? p * lda + i : i * lda + p)] * b[std::size_t(tb ? j * ldb + p : p * ldb + j)];
    R& out = needs[std::size_t(i) * ldc + j];
    out = s + (beta == R(0) ? R(0) : beta * out);
  }
  tile_gemm_blocked(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, beta, c.data(), ldc);
  int wrong = 0;
  for (std::size_t i = 0; i < c.size(); ++i)
    wrong += !(c[i] == needs[i] || (std::isnan(c[i]) && std::isnan(needs[i])));
  return wrong;
}

}  // namespace

TEST_CASE("tile gemm: every remainder of rows, registers and depth, float", "[kernel]") {
  every_remainder<float>();
}
TEST_CASE("tile gemm: every remainder of rows, registers and depth, double", "[kernel]") {
  every_remainder<double>();
}

TEST_CASE("tile gemm: without a library, any shape, transposes and beta", "[kernel]") {
  for (const bool ta : {false, true}) for (const bool tb : {false, true})
      for (const auto& [m, n, k] : {std::array{1, 1, 1},
                                    {3, 5, 7},
                                    {65, 33, 300},
                                    {64, 64, 256},
                                    {70, 130, 257},
                                    {5, 3, 0},
                                    {0, 4, 2}})
        for (const int beta : {0, 1, 2}) {
          CAPTURE(ta, tb, m, n, k, beta);
          CHECK(blocked_differences<float>(ta, tb, m, n, k, float(beta)) == 0);
          CHECK(blocked_differences<double>(ta, tb, m, n, k, beta) == 0);
        }
}
