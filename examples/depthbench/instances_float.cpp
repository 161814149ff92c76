#include "instances.hpp"

namespace depthbench {

template void add_built_in<Cpu, float>(Designs<Cpu, float>&);

}  // namespace depthbench
