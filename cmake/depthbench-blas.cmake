# depthbench::blas = depthbench::depthbench + the matrix library of this machine.
# One file for the build tree and for the installed package, so that both find what the machine at hand has.
#
#   DEPTHBENCH_GEMM   AUTO (whatever exists, never fails) | ONEDNN | CBLAS | BUILTIN
#   defines           DEPTHBENCH_HAS_ONEDNN=1, DEPTHBENCH_HAS_CBLAS=1 (AUTO: may be both; CBLAS then serves fp64),
#                     DEPTHBENCH_HAS_LAPACK=1 where the CBLAS library is LAPACK too
#   sets              depthbench_blas_found (a sentence), depthbench_blas_error (why what was asked for is not there)
#
# oneDNN's own CMake package is not used: Debian's asks for OpenCL's development files, which it does not install.
set(DEPTHBENCH_GEMM AUTO CACHE STRING "matrix library: AUTO, ONEDNN, CBLAS or BUILTIN")
set_property(CACHE DEPTHBENCH_GEMM PROPERTY STRINGS AUTO ONEDNN CBLAS BUILTIN)
set(depthbench_blas_found "")
set(depthbench_blas_error "")
if(NOT DEPTHBENCH_GEMM MATCHES "^(AUTO|ONEDNN|CBLAS|BUILTIN)$")
  set(depthbench_blas_error "DEPTHBENCH_GEMM is '${DEPTHBENCH_GEMM}', needs AUTO, ONEDNN, CBLAS or BUILTIN")
endif()

if(NOT TARGET depthbench::blas)
  add_library(depthbench::blas INTERFACE IMPORTED ${depthbench_blas_global})
  target_link_libraries(depthbench::blas INTERFACE depthbench::depthbench)
endif()

include(CheckCXXSourceCompiles)

# Compiles and links a program of one statement; the result is cached under the name of the variable.
function(depthbench_try_library result include_dir libraries source)
  set(CMAKE_REQUIRED_INCLUDES "${include_dir}")
  set(CMAKE_REQUIRED_LIBRARIES "${libraries}")
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_compiles("${source}" ${result})
endfunction()

# ---- oneDNN, whose OpenMP runtime must be libgomp: the only call made to it is omp_set_num_threads ----
if(DEPTHBENCH_GEMM MATCHES "^(AUTO|ONEDNN)$")
  find_path(DEPTHBENCH_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.h)
  find_library(DEPTHBENCH_ONEDNN_LIBRARY dnnl)
  if(DEPTHBENCH_ONEDNN_INCLUDE_DIR AND DEPTHBENCH_ONEDNN_LIBRARY)
    depthbench_try_library(DEPTHBENCH_ONEDNN_WORKS "${DEPTHBENCH_ONEDNN_INCLUDE_DIR}"
      "${DEPTHBENCH_ONEDNN_LIBRARY};gomp" "
      #include <oneapi/dnnl/dnnl.h>
      extern \"C\" void omp_set_num_threads(int);
      int main() { omp_set_num_threads(1); return dnnl_version()->major == 0; }")
  endif()
  if(DEPTHBENCH_ONEDNN_WORKS)
    set_property(TARGET depthbench::blas APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS DEPTHBENCH_HAS_ONEDNN=1)
    set_property(TARGET depthbench::blas APPEND PROPERTY
      INTERFACE_INCLUDE_DIRECTORIES "${DEPTHBENCH_ONEDNN_INCLUDE_DIR}")
    set_property(TARGET depthbench::blas APPEND PROPERTY
      INTERFACE_LINK_LIBRARIES "${DEPTHBENCH_ONEDNN_LIBRARY}" gomp)
    list(APPEND depthbench_blas_found "oneDNN (${DEPTHBENCH_ONEDNN_LIBRARY})")
  elseif(DEPTHBENCH_GEMM STREQUAL "ONEDNN")
    set(depthbench_blas_error "DEPTHBENCH_GEMM=ONEDNN, but oneDNN with libgomp was not found (libdnnl-dev)")
  endif()
endif()

# ---- CBLAS: the single-threaded OpenBLAS first, since the library brings its own threads ----
if(DEPTHBENCH_GEMM MATCHES "^(AUTO|CBLAS)$")
  find_path(DEPTHBENCH_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-serial openblas)
  find_library(DEPTHBENCH_CBLAS_LIBRARY NAMES openblas cblas blas NAMES_PER_DIR PATH_SUFFIXES openblas-serial)
  if(DEPTHBENCH_CBLAS_INCLUDE_DIR AND DEPTHBENCH_CBLAS_LIBRARY)
    depthbench_try_library(DEPTHBENCH_CBLAS_WORKS "${DEPTHBENCH_CBLAS_INCLUDE_DIR}" "${DEPTHBENCH_CBLAS_LIBRARY}" "
      #include <cblas.h>
      int main() { double x = 1; return cblas_ddot(1, &x, 1, &x, 1) != 1; }")
  endif()
  if(DEPTHBENCH_CBLAS_WORKS)
    set_property(TARGET depthbench::blas APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS DEPTHBENCH_HAS_CBLAS=1)
    set_property(TARGET depthbench::blas APPEND PROPERTY
      INTERFACE_INCLUDE_DIRECTORIES "${DEPTHBENCH_CBLAS_INCLUDE_DIR}")
    set_property(TARGET depthbench::blas APPEND PROPERTY INTERFACE_LINK_LIBRARIES "${DEPTHBENCH_CBLAS_LIBRARY}")
    list(APPEND depthbench_blas_found "CBLAS (${DEPTHBENCH_CBLAS_LIBRARY})")
    # OpenBLAS brings LAPACK along; two of the analyses ask for it
    depthbench_try_library(DEPTHBENCH_LAPACK_WORKS "" "${DEPTHBENCH_CBLAS_LIBRARY}" "
      extern \"C\" void dgesdd_(); extern \"C\" void dgelsd_();
      int main(int argc, char**) { if (argc > 9) { dgesdd_(); dgelsd_(); } return 0; }")
    if(DEPTHBENCH_LAPACK_WORKS)
      set_property(TARGET depthbench::blas APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS DEPTHBENCH_HAS_LAPACK=1)
    endif()
  elseif(DEPTHBENCH_GEMM STREQUAL "CBLAS")
    set(depthbench_blas_error "DEPTHBENCH_GEMM=CBLAS, but no CBLAS was found (libopenblas-serial-dev)")
  endif()
endif()

list(JOIN depthbench_blas_found " and " depthbench_blas_found)
if(DEPTHBENCH_GEMM STREQUAL "BUILTIN")
  set(depthbench_blas_found "the built-in loop, as asked")
elseif(depthbench_blas_found STREQUAL "")
  set(depthbench_blas_found "the built-in loop: slow (on Debian: apt-get install libdnnl-dev libopenblas-serial-dev)")
endif()
