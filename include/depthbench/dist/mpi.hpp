// Ranks on CPUs, over MPI. A program that includes this links MPI; no other header of ours does.
//   MpiWorld world;                                       // once, in main
//   MpiCommunicator<float> ranks(world);
//   Trainer<Cpu, float> trainer(model, sampler, config, &ranks);
// Sums are taken in a fixed tree of ranks, not in the order of arrival: the same bits every time, and the same bits on 1, 2, 4,
// ... ranks if the parts of the batch are the same (TrainConfig::gradient_parts).
#pragma once
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <type_traits>
#include <vector>

#include "depthbench/core/error.hpp"
#include "depthbench/dist/communicator.hpp"

namespace depthbench {

struct mpi_error : error {
  using error::error;
};

namespace detail {
inline void check_mpi(int status, const char* what) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  fail<mpi_error>("mpi: {}: {}", what, std::string(text, std::size_t(length)));
}
}  // namespace detail

// All processes of the job. Only the thread that made it may use it.
class MpiWorld {
 public:
  MpiWorld() {
    int given = 0;
    detail::check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm local;
    detail::check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local), "MPI_Comm_split_type");
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
  }
  ~MpiWorld() { MPI_Finalize(); }
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }  // among the ranks of this machine
  int local_size() const { return local_size_; }

  void broadcast(void* data, std::size_t bytes) const {  // from rank 0
    detail::check_mpi(MPI_Bcast(data, int(bytes), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  }
  // Ends all processes of the job.
  [[noreturn]] void abort(int code) const {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::abort();
  }

 private:
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
};

template <class R> class MpiCommunicator final : public Communicator<R> {
 public:
  explicit MpiCommunicator(const MpiWorld& world) : world_(&world) {
    for (MPI_Comm* c : {&scatter_, &gather_}) {  // two: the collectives of each run in one order on all ranks
      detail::check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, c), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*c, MPI_ERRORS_RETURN);
    }
  }
  ~MpiCommunicator() override {
    for (MPI_Comm* c : {&scatter_, &gather_}) MPI_Comm_free(c);
  }

  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }

  // Every rank gets its share of x from all the others, adds it up, and gives the sum to all: (size - 1) / size of x is sent
  // twice, as in a ring.
  void start_sum(R* x, std::size_t n) override {
    sums_.emplace_back();
    Sum& s = sums_.back();
    s.x = x;
    for (int r = 0; r <= size(); ++r) s.place.push_back(int(n * std::size_t(r) / std::size_t(size())));
    for (int r = 0; r < size(); ++r) s.count.push_back(s.place[std::size_t(r) + 1] - s.place[std::size_t(r)]);
    const int mine = s.mine(rank());
    s.received.resize(std::size_t(mine) * std::size_t(size()));
    s.received_count.assign(std::size_t(size()), mine);
    for (int r = 0; r < size(); ++r) s.received_place.push_back(r * mine);
    detail::check_mpi(MPI_Ialltoallv(x, s.count.data(), s.place.data(), type(), s.received.data(), s.received_count.data(), s.received_place.data(), type(),
                                     scatter_, &s.request), "MPI_Ialltoallv");
    advance(false);
  }
  void wait() override {
    advance(true);
    sums_.clear();
  }
  void sum(std::span<double> x) override {
    std::vector<double> all(x.size() * std::size_t(size()));
    detail::check_mpi(MPI_Allgather(x.data(), int(x.size()), MPI_DOUBLE, all.data(), int(x.size()), MPI_DOUBLE, MPI_COMM_WORLD), "MPI_Allgather");
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = 0;
      for (std::size_t r = 0; r < std::size_t(size()); ++r) x[i] += all[r * x.size() + i];
    }
  }

 private:
  static MPI_Datatype type() { return std::is_same_v<R, float> ? MPI_FLOAT : MPI_DOUBLE; }
  struct Sum {  // of one array, at work until it is gathered
    R* x = nullptr;
    std::vector<int> count, place, received_count, received_place;  // MPI reads these as long as it is at work
    std::vector<R> received;                                       // (size, my share)
    MPI_Request request = MPI_REQUEST_NULL;
    enum class Stage { scattered, gathered } stage = Stage::scattered;
    int mine(int rank) const { return count[std::size_t(rank)]; }
  };
  static bool arrived(Sum& s, bool wait) {
    int flag = 1;
    if (wait) detail::check_mpi(MPI_Wait(&s.request, MPI_STATUS_IGNORE), "MPI_Wait");
    else detail::check_mpi(MPI_Test(&s.request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    return flag != 0;
  }
  // Takes each sum as far as it can go; all of them to their ends if `wait`. In order: so each communicator sees one order.
  void advance(bool wait) {
    for (Sum& s : sums_) {
      if (s.stage != Sum::Stage::scattered) continue;
      if (!arrived(s, wait)) break;
      const std::size_t mine = std::size_t(s.mine(rank()));
      add_pairwise(size(), mine, [&](int r) { return s.received.data() + std::size_t(r) * mine; });
      std::copy_n(s.received.data(), mine, s.x + s.place[std::size_t(rank())]);
      detail::check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, type(), s.x, s.count.data(), s.place.data(), type(), gather_, &s.request), "MPI_Iallgatherv");
      s.stage = Sum::Stage::gathered;
    }
    if (wait) for (Sum& s : sums_) arrived(s, true);
  }

  const MpiWorld* world_;
  MPI_Comm scatter_ = MPI_COMM_NULL, gather_ = MPI_COMM_NULL;
  std::deque<Sum> sums_;
};

}  // namespace depthbench
