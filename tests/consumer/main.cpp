// The smallest program of a user. Compiled by the compiler alone and by each CMake consumer.
#include <cstdio>

#include "depthbench/depthbench.hpp"

int main() {
  try {
    depthbench::fail<depthbench::shape_error>("consumer: had {}, needs {}", 1, 2);
  } catch (const depthbench::error& e) {
    std::puts(e.what());
    return 0;
  }
  return 1;
}
