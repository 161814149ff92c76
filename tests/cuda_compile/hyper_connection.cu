// The row programs of Hyper-Connections on the device, forward and backward: the same bodies as on the CPU, unchanged.
#include "depthbench/kernel/hyper_connection.hpp"

#include "block_primitives.cuh"

namespace db = depthbench;

template <db::Mode M, class Program>
__global__ void on_device(Program program, db::ProgramArgs<Program, float, float> args, int tokens, void* sums) {
  using Team = BlockTeam<float, 1>;
  Team team(512, BlockPrimitives{}, static_cast<typename Team::Pack*>(sums));
  db::run_program<M, float>(program, team, args, int(blockIdx.x), tokens, int(gridDim.x), int(blockIdx.x));
}

template <class Program> void both_ways(const Program& program, int tokens) {
  const db::ProgramArgs<Program, float, float> args{};
  on_device<db::Mode::Fwd><<<16, 128>>>(program, args, tokens, nullptr);
  on_device<db::Mode::Bwd><<<16, 128>>>(program, args, tokens, nullptr);
}

template void both_ways(const db::HyperRead<4>&, int);
template void both_ways(const db::HyperWrite<4>&, int);
template void both_ways(const db::HyperAdvance<4>&, int);
