// The processes of an MPI job. MPI is started only where a launcher started this process.
#include <algorithm>
#include <chrono>
#include <thread>

#include "depthbench/dist/mpi.hpp"
#include "processes.hpp"

namespace depthbench::app {
namespace {

class Job final : public Processes {
 public:
  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  int local_rank() const override { return world_.local_rank(); }
  int local_size() const override { return world_.local_size(); }
  std::string broadcast(const std::string& text) override {
    std::uint64_t length = text.size();
    patient(&length, sizeof length);
    std::string all = text;
    all.resize(length);
    world_.broadcast(all.data(), all.size());
    return all;
  }
  std::unique_ptr<Communicator<float>> cpus() override { return std::make_unique<MpiCommunicator<float>>(world_); }
  MpiWorld* world() override { return &world_; }
  void abort(int code) override { world_.abort(code); }

 private:
  // While rank 0 validates, writes or reports, the others must not take its processor: MPI's own waiting never sleeps.
  void patient(void* data, std::size_t bytes) {
    MPI_Request request;
    detail::check_mpi(MPI_Ibcast(data, int(bytes), MPI_BYTE, 0, MPI_COMM_WORLD, &request), "MPI_Ibcast");
    int done = 0;
    for (int tries = 0; ; ++tries) {
      detail::check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done) return;
      if (tries < 1000) std::this_thread::yield();
      else std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  MpiWorld world_;
};

}  // namespace

std::unique_ptr<Processes> started_processes() {
  if (launched_processes() == 0) return std::make_unique<Processes>();
  return std::make_unique<Job>();
}
std::string mpi_built() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string all(text, std::size_t(length));
  return all.substr(0, std::min(all.find(','), all.find('\n')));
}

}  // namespace depthbench::app
