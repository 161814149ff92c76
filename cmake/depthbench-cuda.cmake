# depthbench::cuda = depthbench::depthbench + what .cu files that include depthbench/backend/cuda.cuh need.
#   project(mine LANGUAGES CXX CUDA)
#   find_package(depthbench REQUIRED COMPONENTS cuda)          or add_subdirectory, with CUDA among the languages
#   add_executable(mine mine.cu)
#   target_link_libraries(mine PRIVATE depthbench::cuda)       and CMAKE_CUDA_ARCHITECTURES, as always
# -std=c++20 by hand: CMake 3.25 knows no C++20 for nvcc.
#   sets   depthbench_cuda_error (why the target is not there)
set(depthbench_cuda_error "")
find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cublasLt)
  set(depthbench_cuda_error "a CUDA toolkit with cuBLASLt was not found; put nvcc on PATH")
elseif(CUDAToolkit_VERSION VERSION_LESS 12)
  set(depthbench_cuda_error "the CUDA toolkit is ${CUDAToolkit_VERSION}, needs 12 or later for C++20")
elseif(NOT TARGET depthbench::cuda)
  add_library(depthbench::cuda INTERFACE IMPORTED ${depthbench_cuda_global})
  target_link_libraries(depthbench::cuda INTERFACE depthbench::depthbench CUDA::cudart CUDA::cublasLt)
  target_compile_options(depthbench::cuda INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>" "$<$<COMPILE_LANGUAGE:CUDA>:-diag-suppress=177>")
endif()
