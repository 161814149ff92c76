// The two LAPACK routines that analyses of large matrices need.   Only where a LAPACK is linked (DEPTHBENCH_HAS_LAPACK).
#pragma once
#include <algorithm>
#include <vector>

#include "depthbench/core/error.hpp"

extern "C" {
void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u, const int* ldu, double* vt,
             const int* ldvt, double* work, const int* lwork, int* iwork, int* info);
void dgelsd_(const int* m, const int* n, const int* nrhs, double* a, const int* lda, double* b, const int* ldb, double* s, const double* rcond,
             int* rank, double* work, const int* lwork, int* iwork, int* info);
}

namespace depthbench::lapack {

// Singular values of a (m, n), the largest first; row- or column-major alike.   cost: O(m n min(m, n))
inline std::vector<double> singular_values(std::vector<double> a, int m, int n) {
  const char job = 'N';
  const int small = std::min(m, n), one = 1;
  std::vector<double> s(static_cast<std::size_t>(small));
  std::vector<int> iwork(8 * static_cast<std::size_t>(small));
  double size = 0;
  int query = -1, info = 0;
  dgesdd_(&job, &m, &n, a.data(), &m, s.data(), nullptr, &one, nullptr, &one, &size, &query, iwork.data(), &info);
  std::vector<double> work(static_cast<std::size_t>(size));
  query = int(size);
  dgesdd_(&job, &m, &n, a.data(), &m, s.data(), nullptr, &one, nullptr, &one, work.data(), &query, iwork.data(), &info);
  if (info != 0) fail<numeric_error>("singular values: dgesdd of a {} x {} matrix gave {}", m, n, info);
  return s;
}

// The x (n, k) of least length that minimises |a x - b|; a (m, n), b (m, k), all column-major.
inline std::vector<double> least_squares(std::vector<double> a, std::vector<double> b, int m, int n, int k) {
  const int ldb = std::max(m, n);
  std::vector<double> x(std::size_t(ldb) * std::size_t(k));
  for (int j = 0; j < k; ++j) std::copy_n(&b[std::size_t(j) * std::size_t(m)], m, &x[std::size_t(j) * std::size_t(ldb)]);
  std::vector<double> s(std::size_t(std::min(m, n)));
  const double rcond = 1e-12;
  double size = 0;
  int rank = 0, query = -1, info = 0, isize = 0;
  dgelsd_(&m, &n, &k, a.data(), &m, x.data(), &ldb, s.data(), &rcond, &rank, &size, &query, &isize, &info);
  std::vector<double> work(static_cast<std::size_t>(size));
  std::vector<int> iwork(std::size_t(std::max(isize, 1)));
  query = int(size);
  dgelsd_(&m, &n, &k, a.data(), &m, x.data(), &ldb, s.data(), &rcond, &rank, work.data(), &query, iwork.data(), &info);
  if (info != 0) fail<numeric_error>("least squares: dgelsd of a {} x {} matrix gave {}", m, n, info);
  std::vector<double> out(std::size_t(n) * std::size_t(k));
  for (int j = 0; j < k; ++j) std::copy_n(&x[std::size_t(j) * std::size_t(ldb)], n, &out[std::size_t(j) * std::size_t(n)]);
  return out;
}

}  // namespace depthbench::lapack
