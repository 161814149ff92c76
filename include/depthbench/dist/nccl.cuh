// Ranks with a GPU each, over NCCL. The sums run on a stream of their own, beside the backward pass that makes the next ones.
//   NcclCommunicator ranks(gpu, world);                   // world: MPI carries NCCL's id to all ranks, and numbers of the host
// NCCL chooses the order in which it adds from the number and wiring of the GPUs: the same bits every time on the same GPUs, not
// the same on another number of them.
#pragma once
#include <nccl.h>

#include "depthbench/backend/cuda.cuh"
#include "depthbench/dist/mpi.hpp"

namespace depthbench {

namespace cuda {
inline void check(ncclResult_t status, std::string_view what) {
  if (status != ncclSuccess) fail<cuda_error>("nccl: {}: {}", what, ncclGetErrorString(status));
}
}  // namespace cuda

class NcclCommunicator final : public Communicator<float> {
 public:
  NcclCommunicator(CudaDevice& device, const MpiWorld& world) : device_(&device), host_(world) {
    ncclUniqueId id;
    if (rank() == 0) cuda::check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    world.broadcast(&id, sizeof id);
    cuda::check(ncclCommInitRank(&comm_, size(), id, rank()), "ncclCommInitRank");
    cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    cuda::check(cudaEventCreateWithFlags(&made_, cudaEventDisableTiming), "cudaEventCreate");
    cuda::check(cudaEventCreateWithFlags(&summed_, cudaEventDisableTiming), "cudaEventCreate");
  }
  ~NcclCommunicator() override {
    cudaStreamSynchronize(stream_);
    ncclCommDestroy(comm_);
    cudaEventDestroy(made_);
    cudaEventDestroy(summed_);
    cudaStreamDestroy(stream_);
  }

  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }

  void start_sum(float* x, std::size_t n) override {
    order(device_->stream(), made_, stream_);  // x is made before it is summed
    cuda::check(ncclAllReduce(x, x, n, ncclFloat, ncclSum, comm_, stream_), "ncclAllReduce");
  }
  void wait() override { order(stream_, summed_, device_->stream()); }
  void sum(std::span<double> x) override { host_.sum(x); }

 private:
  // What `after` is given from now on waits for what `before` was given so far.
  static void order(cudaStream_t before, cudaEvent_t event, cudaStream_t after) {
    cuda::check(cudaEventRecord(event, before), "cudaEventRecord");
    cuda::check(cudaStreamWaitEvent(after, event), "cudaStreamWaitEvent");
  }

  CudaDevice* device_;
  MpiCommunicator<float> host_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t made_ = nullptr, summed_ = nullptr;
};

}  // namespace depthbench
