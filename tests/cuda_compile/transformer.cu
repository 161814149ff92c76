// All of a training step on the GPU: ten designs, the model, the optimizer, the trainer, checkpoints. Compiled and linked; it
// runs where there is a GPU (scripts/gpu_check), and says so where there is none.
#include "depthbench/backend/cuda.cuh"
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/trainer.hpp"

namespace db = depthbench;

template void db::add_built_in(db::Designs<db::CudaDevice, float>&);
template class db::Transformer<db::CudaDevice, float>;
template class db::Trainer<db::CudaDevice, float>;

int main() {
  try {
    db::CudaDevice gpu(0);
  } catch (const db::cuda_error& e) {
    fmt::print("{}\n", e.what());
    return 77;
  }
  return 0;
}
