// The app without CUDA: says so.
#include "engine_cuda.hpp"

namespace depthbench::app {

bool cuda_built() { return false; }
std::string cuda_found() { return "not built (configure with -DDEPTHBENCH_CUDA=ON)"; }
std::unique_ptr<Training> train_on_cuda(int, Processes&, const RunConfig& c, const Data&) {
  cuda_ordinal(c.device);  // throws
  return nullptr;
}
std::unique_ptr<Model> open_on_cuda(int, const RunConfig& c, const std::string&) {
  cuda_ordinal(c.device);
  return nullptr;
}

}  // namespace depthbench::app
