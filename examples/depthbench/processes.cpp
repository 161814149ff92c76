#include "processes.hpp"

#include <cstdlib>

namespace depthbench::app {

int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})  // mpirun of Open MPI, of MPICH; srun
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return 0;
}

}  // namespace depthbench::app
