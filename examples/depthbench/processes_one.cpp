// An app without MPI.
#include "depthbench/core/error.hpp"
#include "processes.hpp"

namespace depthbench::app {

std::unique_ptr<Processes> started_processes() {
  if (const int n = launched_processes(); n > 1)
    fail<config_error>("started as {} processes, but this program was built without MPI (install libopenmpi-dev and configure again)", n);
  return std::make_unique<Processes>();
}
std::string mpi_built() { return "not built (configure with -DDEPTHBENCH_MPI=ON)"; }

}  // namespace depthbench::app
