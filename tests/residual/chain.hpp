// testing::Chain on the CPU in double, as the tests of the designs use it.
#pragma once
#include "depthbench/testing/chain.hpp"
#include "tests/tape/fixture.hpp"

namespace depthbench_test {

using depthbench::testing::Keep;
using depthbench::testing::Verbs;
using Chain = depthbench::testing::Chain<depthbench::Cpu, double>;

}  // namespace depthbench_test
