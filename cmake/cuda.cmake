# The app's instantiation for GPUs.
#   DEPTHBENCH_CUDA   AUTO: built where there are nvcc and a GPU's driver | ON: built, fails without nvcc | OFF
#   DEPTHBENCH_CUDA_ARCHS   e.g. "80;90"; empty: that of this machine's GPU, sm_90 where there is none
# sets depthbench_cuda (YES or NO) and, if YES, offers depthbench_add_cuda_object(TARGET SOURCE).
# Where nccl.h and MPI are there too, several processes with a GPU each can train one model: DEPTHBENCH_NCCL is defined.
# nvcc is called by hand and CUDA is not enabled as a language: CMake 3.25 knows no C++20 for it, and every host flag of ours
# would have to be kept from it.
set(DEPTHBENCH_CUDA AUTO CACHE STRING "the app on GPUs: AUTO, ON or OFF")
set_property(CACHE DEPTHBENCH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(DEPTHBENCH_CUDA_ARCHS "" CACHE STRING "compute capabilities to compile for")
if(NOT DEPTHBENCH_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "depthbench: DEPTHBENCH_CUDA is '${DEPTHBENCH_CUDA}', needs AUTO, ON or OFF")
endif()

set(depthbench_cuda NO)
if(NOT DEPTHBENCH_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit QUIET)
  set(depthbench_driver NO)
  if(EXISTS /proc/driver/nvidia/version OR EXISTS /dev/nvidiactl)
    set(depthbench_driver YES)
  endif()
  if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE AND TARGET CUDA::cublasLt)
    if(DEPTHBENCH_CUDA STREQUAL "ON" OR depthbench_driver)
      set(depthbench_cuda YES)
    endif()
  elseif(DEPTHBENCH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "depthbench: DEPTHBENCH_CUDA=ON, but nvcc with cuBLASLt was not found; put nvcc on PATH")
  endif()
endif()
message(STATUS "depthbench: CUDA ${DEPTHBENCH_CUDA}, built: ${depthbench_cuda}")
if(NOT depthbench_cuda)
  return()
endif()

find_library(DEPTHBENCH_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib ${CUDAToolkit_LIBRARY_ROOT}/lib64)
find_path(DEPTHBENCH_NCCL_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(depthbench_nccl NO)
if(depthbench_mpi AND DEPTHBENCH_NCCL_LIBRARY AND DEPTHBENCH_NCCL_DIR)
  set(depthbench_nccl YES)
endif()
message(STATUS "depthbench: NCCL, built: ${depthbench_nccl}")

# TARGET: an object library or executable in C++; SOURCE: a .cu file, compiled with its include folders and definitions
function(depthbench_add_cuda_object target source)
  cmake_path(GET source STEM name)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.cu.o)
  set(code)
  foreach(arch IN LISTS DEPTHBENCH_CUDA_ARCHS)
    list(APPEND code -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  if(NOT code)
    set(code -arch=$<IF:$<BOOL:${depthbench_driver}>,native,sm_90>)
  endif()
  set(nccl)
  if(depthbench_nccl)
    set(nccl -DDEPTHBENCH_NCCL=1 -I${DEPTHBENCH_NCCL_DIR})
    foreach(dir IN LISTS MPI_CXX_INCLUDE_DIRS)
      list(APPEND nccl -I${dir})
    endforeach()
    target_link_libraries(${target} PUBLIC ${DEPTHBENCH_NCCL_LIBRARY} MPI::MPI_CXX)
  endif()
  add_custom_command(OUTPUT ${object}
    COMMAND ${CUDAToolkit_NVCC_EXECUTABLE} -std=c++20 -O3 -diag-suppress=177 ${code} ${nccl} -ccbin ${CMAKE_CXX_COMPILER}
      "-I$<JOIN:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,;-I>" "-D$<JOIN:$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>,;-D>"
      "$<$<BOOL:${DEPTHBENCH_NATIVE}>:-Xcompiler=-march=native>" -Xcompiler=-Wno-psabi -MD -MF ${object}.d -c ${source} -o ${object}
    DEPENDS ${source} DEPFILE ${object}.d COMMAND_EXPAND_LISTS VERBATIM COMMENT "nvcc ${name}.cu")
  add_custom_target(${target}_${name} DEPENDS ${object})
  add_dependencies(${target} ${target}_${name})
  target_link_libraries(${target} PUBLIC ${object} CUDA::cudart_static CUDA::cublasLt)  # to whoever links the target
endfunction()
