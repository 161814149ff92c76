// The processes that mpirun or srun started as one job, or this one alone. Rank 0 runs the commands; the others follow it.
#pragma once
#include <cstdlib>
#include <memory>
#include <string>

#include "depthbench/dist/communicator.hpp"

namespace depthbench {
class MpiWorld;
}

namespace depthbench::app {

class Processes {  // as it stands: this one alone
 public:
  virtual ~Processes() = default;
  virtual int rank() const { return 0; }
  virtual int size() const { return 1; }
  virtual int local_rank() const { return 0; }  // among those of this machine
  virtual int local_size() const { return 1; }
  virtual std::string broadcast(const std::string& text) { return text; }  // rank 0's, on every rank
  virtual std::unique_ptr<Communicator<float>> cpus() { return std::make_unique<Communicator<float>>(); }
  virtual MpiWorld* world() { return nullptr; }  // none: one process
  [[noreturn]] virtual void abort(int code) { std::exit(code); }  // ends the whole job
};

// processes_mpi.cpp where the app was built with MPI, processes_one.cpp where it was not: then
//   throws config_error if a launcher started more than one process
std::unique_ptr<Processes> started_processes();
std::string mpi_built();  // "Open MPI v4.1.4", or how to get it

// Processes that a launcher says it started; 0: no launcher.
int launched_processes();

}  // namespace depthbench::app
