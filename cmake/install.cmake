# Headers, targets and the package files: find_package(depthbench), also with COMPONENTS blas cuda.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(depthbench_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/depthbench)

install(TARGETS depthbench EXPORT depthbenchTargets FILE_SET HEADERS)
file(GLOB_RECURSE cuda_headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/include CONFIGURE_DEPENDS
     include/depthbench/*.cuh include/depthbench/backend/cuda*.hpp include/depthbench/dist/mpi.hpp)
foreach(header IN LISTS cuda_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES include/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(EXPORT depthbenchTargets NAMESPACE depthbench:: DESTINATION ${depthbench_package_dir})

configure_package_config_file(cmake/depthbenchConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/package/depthbenchConfig.cmake INSTALL_DESTINATION ${depthbench_package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/package/depthbenchConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/package/depthbenchConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/package/depthbenchConfigVersion.cmake
              cmake/depthbench-blas.cmake cmake/depthbench-cuda.cmake
        DESTINATION ${depthbench_package_dir})
