// Processes that train one model together, called ranks: each works on a part of the batch, all add up the gradient.
//   Communicator            this process alone
//   MpiCommunicator         CPUs, over MPI           dist/mpi.hpp
//   NcclCommunicator        GPUs, one a rank         dist/nccl.cuh
#pragma once
#include <cstddef>
#include <span>

namespace depthbench {

template <class R> class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }

  // Begins to add x (n numbers of the device) up over all ranks, in place: every rank gets the same bits. All ranks call with
  // the same lengths in the same order. x is not to be touched before wait().
  virtual void start_sum(R* x, std::size_t n) { (void)x, (void)n; }
  // All sums that were begun are there, for whatever runs next on the device.
  virtual void wait() {}
  // Adds up numbers of the host, in the order of ranks, at once.
  virtual void sum(std::span<double> x) { (void)x; }
};

// Adds up `count` rows in a fixed tree, neighbours first: ((0 + 1) + (2 + 3)) + (4 + 5). The sum is left in row 0; rows are lost.
//   row(i): where row i begins, n numbers. A tree of 2^k rows is also the tree of its 2^j sums of 2^(k - j) neighbours.
template <class Row> void add_pairwise(int count, std::size_t n, const Row& row) {
  for (int apart = 1; apart < count; apart *= 2)
    for (int i = 0; i + apart < count; i += 2 * apart) {
      auto *to = row(i), *from = row(i + apart);
      for (std::size_t k = 0; k < n; ++k) to[k] += from[k];
    }
}

}  // namespace depthbench
