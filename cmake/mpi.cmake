# The app as several processes: mpirun -n 4 build/depthbench train ...
#   DEPTHBENCH_MPI   AUTO: built where MPI is found | ON: fails without it | OFF
# sets depthbench_mpi (YES or NO) and offers MPI::MPI_CXX
set(DEPTHBENCH_MPI AUTO CACHE STRING "the app over MPI: AUTO, ON or OFF")
set_property(CACHE DEPTHBENCH_MPI PROPERTY STRINGS AUTO ON OFF)
if(NOT DEPTHBENCH_MPI MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "depthbench: DEPTHBENCH_MPI is '${DEPTHBENCH_MPI}', needs AUTO, ON or OFF")
endif()
set(depthbench_mpi NO)
if(NOT DEPTHBENCH_MPI STREQUAL "OFF" AND DEPTHBENCH_SANITIZE STREQUAL "none")  # MPI's own code is not clean under sanitizers
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(depthbench_mpi YES)
  elseif(DEPTHBENCH_MPI STREQUAL "ON")
    message(FATAL_ERROR "depthbench: DEPTHBENCH_MPI=ON, but MPI was not found; on Debian: apt-get install libopenmpi-dev openmpi-bin")
  endif()
endif()
message(STATUS "depthbench: MPI ${DEPTHBENCH_MPI}, built: ${depthbench_mpi}")
