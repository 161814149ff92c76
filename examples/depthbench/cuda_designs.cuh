// Designs of your own on GPUs: in a .cu file that is linked with the app, beside the app::run of its .cpp half,
//   static const depthbench::app::AddCudaDesigns mine([](auto& designs) { designs.add("my_design", ...); });
// The same function serves both: a design is a template over its device.
#pragma once
#include <functional>
#include <vector>

#include "depthbench/backend/cuda.cuh"
#include "depthbench/residual/designs.hpp"

namespace depthbench::app {

class AddCudaDesigns {
 public:
  using Add = std::function<void(Designs<CudaDevice, float>&)>;
  explicit AddCudaDesigns(Add add) { all().push_back(std::move(add)); }

  static Designs<CudaDevice, float> designs() {  // the built-in ones and those
    Designs<CudaDevice, float> d;
    for (const Add& add : all()) add(d);
    return d;
  }

 private:
  static std::vector<Add>& all() {
    static std::vector<Add> list;
    return list;
  }
};

}  // namespace depthbench::app
