// Two translation units that both include everything: a function in a header that is not inline fails to link.
#include "depthbench/depthbench.hpp"

const void* address_of_fail_in_other_unit();

int main() {
  auto* here = &depthbench::fail<depthbench::shape_error>;
  return address_of_fail_in_other_unit() == reinterpret_cast<const void*>(here) ? 0 : 1;
}
