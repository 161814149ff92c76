// expect: output rows: a different number of rows
#include "depthbench/kernel/program.hpp"

namespace db = depthbench;

struct Copy {
  using params = db::Leaves<>;
#ifndef POSITIVE_CONTROL
  using tokens = db::Leaves<db::Rows<2>, db::OutRows<3>>;
#else
  using tokens = db::Leaves<db::Rows<2>, db::OutRows<2>>;
#endif
  void operator()(auto&, auto& x, auto& y) const { y = x; }
};

void run(db::SerialTeam<float>& team, const db::ProgramArgs<Copy, float, float>& args) {
  db::run_program<db::Mode::Fwd, float>(Copy{}, team, args, 0, 1, 1, 0);
}
