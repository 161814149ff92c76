#include "depthbench/depthbench.hpp"

const void* address_of_fail_in_other_unit() {
  return reinterpret_cast<const void*>(&depthbench::fail<depthbench::shape_error>);
}
