// Models and trainers on a GPU, in float32. The designs are the built-in ones and those of cuda_designs.cuh.
#include "depthbench/backend/cuda.cuh"
#if DEPTHBENCH_NCCL
#include "depthbench/dist/nccl.cuh"
#endif
#include "cuda_designs.cuh"
#include "engine_cuda.hpp"
#include "engine_model.hpp"

namespace depthbench::app {

bool cuda_built() { return true; }

std::string cuda_found() {
  try {
    const CudaDevice gpu(0);
    const auto& p = gpu.properties();
    return fmt::format("{}, {} processors, {} GB", p.name, p.multiProcessorCount, p.totalGlobalMem >> 30);
  } catch (const cuda_error& e) {
    return e.what();
  }
}

namespace {
auto maker(int ordinal) {
  return [ordinal] { return CudaDevice(ordinal); };
}
// A GPU that is not there is a matter of configuration.
template <class F> auto configured(F f) {
  try {
    return f();
  } catch (const cuda_error& e) {
    throw config_error(std::string("run.device: ") + e.what());
  }
}

std::unique_ptr<Communicator<float>> joined(CudaDevice& gpu, Processes& processes) {
  if (processes.size() == 1) return std::make_unique<Communicator<float>>();
#if DEPTHBENCH_NCCL
  return std::make_unique<NcclCommunicator>(gpu, *processes.world());
#else
  (void)gpu;
  fail<config_error>("run.device: {} processes with GPUs need NCCL, and this program was built without (needs MPI and nccl.h)", processes.size());
#endif
}
}  // namespace

std::unique_ptr<Training> train_on_cuda(int ordinal, Processes& processes, const RunConfig& c, const Data& data) {
  return configured([&] {
    return std::make_unique<Trained<CudaDevice>>(maker(ordinal + processes.local_rank()), [&](CudaDevice& gpu) { return joined(gpu, processes); },
                                                 AddCudaDesigns::designs(), c, data);
  });
}
std::unique_ptr<Model> open_on_cuda(int ordinal, const RunConfig& c, const std::string& checkpoint) {
  return configured([&] { return std::make_unique<Held<CudaDevice>>(maker(ordinal), AddCudaDesigns::designs(), c, checkpoint); });
}

}  // namespace depthbench::app
