// The designs, compiled once for this folder's tests (memory_test.cpp).
#pragma once
#include "depthbench/account/count.hpp"
#include "depthbench/backend/cpu.hpp"
#include "depthbench/residual/designs.hpp"

namespace depthbench {
extern template void add_built_in<Cpu, float>(Designs<Cpu, float>&);
extern template void add_built_in<ShapeOnly, float>(Designs<ShapeOnly, float>&);
}  // namespace depthbench

namespace depthbench_test {
inline depthbench::Cost counted(const std::string& design, const depthbench::ModelConfig& c, const depthbench::CountOptions& o = {}) {
  return depthbench::count(c, depthbench::Designs<depthbench::ShapeOnly, float>().make(design), o);
}
}  // namespace depthbench_test
