// expect: columns<first, count>: outside the matrix
#include "depthbench/kernel/program.hpp"

namespace db = depthbench;

struct Part {
  using params = db::Leaves<>;
  using tokens = db::Leaves<db::Token<2, 3>, db::OutToken<2, 2>>;
  void operator()(auto&, auto& x, auto& y) const {
#ifndef POSITIVE_CONTROL
    y = db::columns<2, 2>(x);
#else
    y = db::columns<1, 2>(x);
#endif
  }
};

void run(db::SerialTeam<float>& team, const db::ProgramArgs<Part, float, float>& args) {
  db::run_program<db::Mode::Fwd, float>(Part{}, team, args, 0, 1, 1, 0);
}
