# Checks of the sources and of the package: include direction, headers alone, compile cost, code that must not
# compile, two translation units, consumers, CUDA. Included by tests/CMakeLists.txt.
set(include_dir ${PROJECT_SOURCE_DIR}/include)
set(umbrella ${include_dir}/depthbench/depthbench.hpp)
find_package(Python3 QUIET COMPONENTS Interpreter)

# ---- includes run one way ----
if(Python3_FOUND)
  add_test(NAME source/check_includes COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/check_includes)
  add_test(NAME source/check_includes_finds_planted_faults
           COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/check_includes --self-test)
  set_tests_properties(source/check_includes source/check_includes_finds_planted_faults PROPERTIES LABELS source)
endif()

# ---- every header compiles alone; scripts/test builds the target beforehand, so that this finds nothing to do ----
add_test(NAME headers/each_alone COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR}
         --target all_verify_interface_header_sets)
set_tests_properties(headers/each_alone PROPERTIES LABELS headers RUN_SERIAL TRUE TIMEOUT 1800)

# ---- must not compile, saying why ----
file(GLOB compile_fail_files CONFIGURE_DEPENDS compile_fail/*_fail.cpp)
set(compile_fail ${PROJECT_SOURCE_DIR}/tools/compile_fail ${CMAKE_CXX_COMPILER} -std=c++20 -I${include_dir} --)
foreach(file IN LISTS compile_fail_files)
  cmake_path(GET file STEM stem)
  add_test(NAME compile_fail/${stem} COMMAND ${compile_fail} ${file})
  set_tests_properties(compile_fail/${stem} PROPERTIES LABELS compile_fail)
endforeach()
add_test(NAME compile_fail/self_test COMMAND ${compile_fail} --self-test)
set_tests_properties(compile_fail/self_test PROPERTIES LABELS compile_fail)

# ---- each example prints what its last comment says ----
if(DEPTHBENCH_EXAMPLES AND Python3_FOUND)
  file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
  foreach(source IN LISTS examples)
    cmake_path(GET source STEM stem)
    add_test(NAME example/${stem}
             COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/check_example ${source} $<TARGET_FILE:example_${stem}>)
    set_tests_properties(example/${stem} PROPERTIES LABELS example TIMEOUT 300)
  endforeach()
endif()

# ---- pages, as a browser shows them ----
if(DEPTHBENCH_EXAMPLES AND Python3_FOUND)
  add_test(NAME pages/as_shown COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/pages/check $<TARGET_FILE:depthbench_app> ${CMAKE_CURRENT_BINARY_DIR}/pages)
  add_test(NAME pages/faults_are_found COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/check_page --self-test)
  set_tests_properties(pages/as_shown pages/faults_are_found PROPERTIES LABELS pages SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()

# ---- CUDA: compiled, linked, read; never run ----
add_test(NAME cuda_compile COMMAND ${PROJECT_SOURCE_DIR}/tools/cuda_compile ${PROJECT_SOURCE_DIR}
         ${CMAKE_CURRENT_BINARY_DIR}/cuda_compile)
set_tests_properties(cuda_compile PROPERTIES LABELS cuda_compile SKIP_RETURN_CODE 77 TIMEOUT 900)
if(Python3_FOUND)
  add_test(NAME cuda_compile/report_finds_planted_faults
           COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/ptxas_report --self-test)
  set_tests_properties(cuda_compile/report_finds_planted_faults PROPERTIES LABELS cuda_compile)
endif()

# ---- what a user does with the umbrella ----
if(NOT EXISTS ${umbrella})
  message(STATUS "depthbench: no umbrella header yet, its tests are left out")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${include_dir}/depthbench)
  return()
endif()

add_executable(test_two_units two_units/main.cpp two_units/other.cpp)
target_link_libraries(test_two_units PRIVATE depthbench::blas depthbench_developer)
target_compile_options(test_two_units PRIVATE -O0 -UNDEBUG)
add_test(NAME package/two_translation_units COMMAND test_two_units)

add_test(NAME package/compiler_alone COMMAND ${PROJECT_SOURCE_DIR}/tools/compile_alone ${CMAKE_CXX_COMPILER}
         ${include_dir} ${CMAKE_CURRENT_SOURCE_DIR}/consumer/main.cpp ${CMAKE_CURRENT_BINARY_DIR}/compiler_alone)
add_test(NAME source/compile_cost COMMAND ${PROJECT_SOURCE_DIR}/tools/compile_cost ${CMAKE_CXX_COMPILER}
         ${include_dir} ${umbrella_lines_limit})
set_tests_properties(source/compile_cost PROPERTIES LABELS source)

set(prefix ${CMAKE_CURRENT_BINARY_DIR}/prefix)
if(DEPTHBENCH_INSTALL)
  add_test(NAME package/install COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${prefix})
  set_tests_properties(package/install PROPERTIES FIXTURES_SETUP installed)
endif()
function(add_consumer_test name source_dir)
  set(build_dir ${CMAKE_CURRENT_BINARY_DIR}/consumer_${name})
  add_test(NAME package/${name} COMMAND ${CMAKE_CTEST_COMMAND}
    --build-and-test ${CMAKE_CURRENT_SOURCE_DIR}/consumer/${source_dir} ${build_dir}
    --build-generator ${CMAKE_GENERATOR} --build-noclean
    --build-options -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} ${ARGN}
    --test-command ${build_dir}/consumer)
  set_property(TEST package/${name} PROPERTY LABELS package)
endfunction()
if(DEPTHBENCH_INSTALL)
  foreach(kind plain blas)
    add_consumer_test(find_package_${kind} find_package -DCMAKE_PREFIX_PATH=${prefix} -DCONSUMER_KIND=${kind})
    set_tests_properties(package/find_package_${kind} PROPERTIES FIXTURES_REQUIRED installed)
  endforeach()
endif()
find_program(DEPTHBENCH_NVCC nvcc)
if(DEPTHBENCH_INSTALL AND DEPTHBENCH_NVCC)
  add_consumer_test(find_package_cuda cuda -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CUDA_ARCHITECTURES=90 -DCMAKE_CUDA_COMPILER=${DEPTHBENCH_NVCC})
  set_tests_properties(package/find_package_cuda PROPERTIES FIXTURES_REQUIRED installed)
endif()
add_consumer_test(add_subdirectory add_subdirectory -DDEPTHBENCH_SOURCE=${PROJECT_SOURCE_DIR})
set_property(TEST package/two_translation_units package/compiler_alone PROPERTY LABELS package)
if(DEPTHBENCH_INSTALL)
  set_property(TEST package/install PROPERTY LABELS package)
endif()
