// expect: use of deleted function
#include "depthbench/kernel/program.hpp"

namespace db = depthbench;

// Rows that a mixture refers to must have a name: they are written to when the scope closes.
struct Twice {
  using params = db::Leaves<db::Param<1, 2>>;
  using tokens = db::Leaves<db::Rows<2>, db::OutRows<1>>;
  void operator()(auto&, auto& a, auto& x, auto& y) const {
    using namespace db;
#ifndef POSITIVE_CONTROL
    y = mix(a, rows(same(x) + same(x)));
#else
    auto h = rows(same(x) + same(x));
    y = mix(a, h);
#endif
  }
};

void run(db::SerialTeam<float>& team, const db::ProgramArgs<Twice, float, float>& args) {
  db::run_program<db::Mode::Fwd, float>(Twice{}, team, args, 0, 1, 1, 0);
}
