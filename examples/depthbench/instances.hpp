// The templates that take longest to compile, instantiated once each (instances_*.cpp) for the whole program.
#pragma once
#include "depthbench/backend/cpu.hpp"
#include "depthbench/backend/shape_only.hpp"
#include "depthbench/residual/designs.hpp"

namespace depthbench {

extern template void add_built_in<Cpu, float>(Designs<Cpu, float>&);
extern template void add_built_in<Cpu, double>(Designs<Cpu, double>&);
extern template void add_built_in<ShapeOnly, float>(Designs<ShapeOnly, float>&);

}  // namespace depthbench
