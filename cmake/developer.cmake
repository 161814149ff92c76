# How our own programs (tests, examples, app, benchmarks) are compiled. Nothing here reaches a user of the library.
option(DEPTHBENCH_NATIVE "compile our programs for this machine's CPU" ${PROJECT_IS_TOP_LEVEL})
set(DEPTHBENCH_SANITIZE none CACHE STRING "sanitizer of our programs: none, address (with undefined) or thread")
set_property(CACHE DEPTHBENCH_SANITIZE PROPERTY STRINGS none address thread)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "build type" FORCE)
  endif()
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(DEPTHBENCH_CCACHE ccache)
  if(DEPTHBENCH_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${DEPTHBENCH_CCACHE})
  endif()
endif()

include(CheckCXXCompilerFlag)
add_library(depthbench_developer INTERFACE)
# -Wno-psabi: vectors wider than the target's registers are passed in memory, and g++ tells so at each use;
# -Wno-missing-field-initializers: {.format = text} means the defaults for the rest
target_compile_options(depthbench_developer INTERFACE
  -fno-math-errno  # std::sqrt then need not set errno, and vectorises
  -Wall -Wextra -Wno-unknown-pragmas -Wno-psabi -Wno-missing-field-initializers)
target_include_directories(depthbench_developer INTERFACE ${PROJECT_SOURCE_DIR})
if(DEPTHBENCH_NATIVE)
  check_cxx_compiler_flag(-march=native DEPTHBENCH_HAS_MARCH_NATIVE)
  if(DEPTHBENCH_HAS_MARCH_NATIVE)
    target_compile_options(depthbench_developer INTERFACE -march=native)
  endif()
endif()

if(DEPTHBENCH_SANITIZE STREQUAL "address")
  # null, object-size and vptr double what the address sanitizer sees, and a quarter of the compile time
  set(depthbench_sanitizers -fsanitize=address,undefined -fno-sanitize=null,object-size,vptr -fno-sanitize-recover=all)
elseif(DEPTHBENCH_SANITIZE STREQUAL "thread")
  set(depthbench_sanitizers -fsanitize=thread)
elseif(NOT DEPTHBENCH_SANITIZE STREQUAL "none")
  message(FATAL_ERROR "depthbench: DEPTHBENCH_SANITIZE is '${DEPTHBENCH_SANITIZE}', needs none, address or thread")
endif()
if(depthbench_sanitizers)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1")       # asserts on; lines only: full debug information doubles the time
  target_compile_options(depthbench_developer INTERFACE ${depthbench_sanitizers} -fno-omit-frame-pointer)
  target_compile_definitions(depthbench_developer INTERFACE DEPTHBENCH_NO_FORCE_INLINE=1)
  target_link_options(depthbench_developer INTERFACE ${depthbench_sanitizers})
endif()
set(launcher none)
if(CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
message(STATUS "depthbench: ${CMAKE_BUILD_TYPE}, sanitizer ${DEPTHBENCH_SANITIZE}, "
               "-march=native ${DEPTHBENCH_NATIVE}, compiler launcher ${launcher}")
