// expect: the shapes of the two operands do not broadcast: each axis must be equal or 1
#include "depthbench/kernel/program.hpp"

namespace db = depthbench;

struct Sum {
#ifndef POSITIVE_CONTROL
  using params = db::Leaves<db::Param<2, 2>>;
#else
  using params = db::Leaves<db::Param<1, 3>>;
#endif
  using tokens = db::Leaves<db::Token<2, 3>, db::OutToken<2, 3>>;
  void operator()(auto&, auto& p, auto& x, auto& y) const { y = x + p; }
};

void run(db::SerialTeam<float>& team, const db::ProgramArgs<Sum, float, float>& args) {
  db::run_program<db::Mode::Fwd, float>(Sum{}, team, args, 0, 1, 1, 0);
}
