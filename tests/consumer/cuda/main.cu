// A user's op on a GPU. Without one it says so and is content: it was compiled and linked.
#include <cstdio>

#include "depthbench/backend/cuda.cuh"
#include "depthbench/op/add.hpp"

int main() {
  try {
    depthbench::CudaDevice gpu(0);
    depthbench::Tape<depthbench::CudaDevice, float> tape(gpu);
    const auto one = tape.make({8}), two = depthbench::add(one, one);
    std::printf("%d numbers on %s\n", int(two.numel()), gpu.properties().name);
  } catch (const depthbench::cuda_error& e) {
    std::puts(e.what());
  }
}
