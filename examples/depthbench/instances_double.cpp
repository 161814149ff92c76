#include "instances.hpp"

namespace depthbench {

template void add_built_in<Cpu, double>(Designs<Cpu, double>&);

}  // namespace depthbench
