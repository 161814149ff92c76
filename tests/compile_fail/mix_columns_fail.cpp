// expect: mix(A, H): A must have one column per row of H
#include "depthbench/kernel/program.hpp"

namespace db = depthbench;

struct Mixture {
#ifndef POSITIVE_CONTROL
  using params = db::Leaves<db::Param<1, 3>>;
#else
  using params = db::Leaves<db::Param<1, 2>>;
#endif
  using tokens = db::Leaves<db::Rows<2>, db::OutRows<1>>;
  void operator()(auto&, auto& a, auto& x, auto& y) const { y = mix(a, x); }
};

void run(db::SerialTeam<float>& team, const db::ProgramArgs<Mixture, float, float>& args) {
  db::run_program<db::Mode::Fwd, float>(Mixture{}, team, args, 0, 1, 1, 0);
}
