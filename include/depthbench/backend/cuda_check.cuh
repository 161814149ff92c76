// Errors of the CUDA runtime and of cuBLASLt, with what was asked for.
#pragma once
#include <cublasLt.h>
#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "depthbench/core/error.hpp"

namespace depthbench {

struct cuda_error : error {  // a device that is not there, a launch or call that failed
  using error::error;
};

namespace cuda {

inline void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess) fail<cuda_error>("cuda: {}: {}", what, cudaGetErrorString(status));
}
inline void check(cublasStatus_t status, std::string_view what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail<cuda_error>("cuda: {}: {}", what, cublasLtGetStatusString(status));
}

// "depthbench::RmsNorm"
template <class T> std::string name_of_type() {
  const std::string_view all = __PRETTY_FUNCTION__, key = "T = ";
  const std::size_t first = all.find(key) + key.size(), last = all.find_first_of(";]", first);
  return std::string(all.substr(first, last - first));
}

}  // namespace cuda
}  // namespace depthbench
