#include "instances.hpp"

namespace depthbench {

template void add_built_in<ShapeOnly, float>(Designs<ShapeOnly, float>&);

}  // namespace depthbench
