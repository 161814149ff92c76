// A row program: what happens to one token, written once. The constructors of its nodes run forward, their destructors
// backward, and the library runs it over all tokens and threads: no second formula for the gradient.
#include "depthbench/backend/cpu.hpp"
#include "depthbench/op/row_program.hpp"
#include "depthbench/testing/bench.hpp"

namespace db = depthbench;
using V = db::Var<db::Cpu, double>;

// A gate that looks at the token:   o = x + sigmoid(<w, x> / rms(x)) y
struct Gated {
  using params = db::Leaves<db::Channels<1>>;                                // w (d)
  using tokens = db::Leaves<db::Rows<1>, db::Rows<1>, db::OutRows<1>>;       // x, y -> o      (d) each
  DB_FN void operator()(auto&, auto& w, auto& x, auto& y, auto& o) const {
    auto m = db::moments(x, w);                                              // (1, 2)   <w, x> and <x, x>    REDUCE
    auto r = db::rsqrt(db::column<1>(m) / x.dim() + 1e-6);                   // (1, 1)                        SMALL
    auto gate = db::sigmoid(r * db::column<0>(m));                           // (1, 1)
    o = db::same(x) + db::mix(gate, y);                                      // (1, d)                        COMBINE
  }
};
V gated(V w, V x, V y) { return db::apply<Gated, db::Cpu, double>({}, x.cols(), {w}, {x, y})[0]; }

int main() {
  db::testing::Bench<db::Cpu, double> b({{5}, {7, 5}, {7, 5}});              // w, x, y: 7 tokens of width 5
  const auto f = [&] { return gated(b.var(0), b.var(1), b.var(2)); };

  std::vector<double> loops;  // the same by plain loops
  for (int t = 0; t < 7; ++t) {
    const double *w = b.at(0).value, *x = b.at(1).value + 5 * t, *y = b.at(2).value + 5 * t;
    double dot = 0, square = 0;
    for (int c = 0; c < 5; ++c) dot += w[c] * x[c], square += x[c] * x[c];
    const double gate = 1 / (1 + std::exp(-dot / std::sqrt(square / 5 + 1e-6)));
    for (int c = 0; c < 5; ++c) loops.push_back(x[c] + gate * y[c]);
  }
  fmt::print("equals its loops: {}\n", db::testing::error_of(db::testing::copy_of(f()), loops) < 1e-13);
  b.tape.clear();
  fmt::print("its gradients, which nobody wrote, are right: {}\n",
             b.check([&] { return db::testing::probe(f()); }).worst < 1e-8);
  b.tape.clear();
  fmt::print("{}\n", [&] {
    try {
      gated(b.var(0), b.var(1), b.var(0));
    } catch (const db::shape_error& e) {
      return std::string(e.what());
    }
    return std::string("anything goes");
  }());
}

// Expected output:
// equals its loops: true
// its gradients, which nobody wrote, are right: true
// row program: input 1 has shape (5), needs 35 elements (7 tokens, width 5)
