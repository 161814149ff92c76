// An eleventh design, yours: it passes the eight tests, and the app trains and compares it like the ten.
//
//   10_own_design train residual.design=rezero     10_own_design sweep --out DIR sweep.designs=pre_ln,rezero
//   10_own_design account --design pre_ln,rezero   counts it too: FLOPs, bytes, memory
#include <filesystem>

#include "depthbench/op/row_program.hpp"
#include "depthbench/testing/check_design.hpp"
#include "examples/depthbench/app.hpp"

namespace db = depthbench;

// ReZero: one scalar a sublayer.   x' = x + a S(N(x)),   a = 0 at first        x (N, d)   a ()        Bachlechner et al. 2020
struct AddScaled {
  using params = db::Leaves<db::Param<1>>;                              // a
  using tokens = db::Leaves<db::Rows<1>, db::Rows<1>, db::OutRows<1>>;  // x, y -> o
  DB_FN void operator()(auto&, auto& a, auto& x, auto& y, auto& o) const { o = db::same(x) + db::mix(a, y); }
};

template <class Device, class R> class ReZero final : public db::Residual<Device, R> {
 public:
  using typename db::Residual<Device, R>::Variable;
  using typename db::Residual<Device, R>::State;
  explicit ReZero(const db::DesignOptions& options = {}) { options.expect_only("rezero", {}); }

  void declare(db::Parameters<Device, R>& p, const db::ResidualShape& shape) override {
    eps_ = shape.norm_eps;
    gain_ = db::declare_branch_norms(p, shape);
    for (int k = 0; k < shape.sublayers; ++k)
      a_.push_back(&p.declare(db::sublayer_name(k) + "_rezero.scale", {}, db::Init::constant(0), db::Decay::no, db::Part::residual));
  }
  State open(Variable x) override { return {{x}, nullptr}; }  // (N, d)
  Variable read(State& s, int k) override { return db::rms_norm(s.values[0], s.values[0].tape->use(*gain_[k]), eps_); }
  void write(State& s, Variable y, int k) override {
    s.values[0] = db::apply<AddScaled, Device, R>({}, y.cols(), {y.tape->use(*a_[k])}, {s.values[0], y})[0];
  }
  Variable close(State& s) override { return s.values[0]; }
  Variable state(State& s, int) override { return s.values[0]; }

 private:
  double eps_ = 0;
  std::vector<db::Parameter<R>*> gain_, a_;  // one a sublayer
};

int main(int argc, char** argv) {
  const auto add = [](auto& designs) { designs.template add_type<ReZero>("rezero"); };  // for training, and for account
  if (argc > 1) return db::app::run(argc, argv, add);

  const auto scale = [](int k) { return db::sublayer_name(k) + "_rezero.scale"; };
  db::testing::Claims claims;
  claims.formula = [&](db::testing::OneToken& t) {
    auto x = t.embedding();
    for (int k = 0; k < t.sublayers(); ++k) {
      const auto y = t.branch(k, t.norm(x, t.gain(k)));
      for (int c = 0; c < t.width(); ++c) x[c] += *t.parameter(scale(k)) * y[c];
    }
    return x;
  };
  claims.at_initialisation = [](db::testing::OneToken& t) { return t.embedding(); };
  claims.sibling = [] { return std::make_unique<db::PreLn<db::Cpu, double>>(); };
  claims.reduce = [&](auto& chain) { for (int k = 0; k < chain.sublayers; ++k) *chain.find(scale(k)) = 1; };
  const auto report = db::testing::check_design<ReZero>(claims);
  fmt::print("{}\n", report.text());
  if (!report.passed()) return 1;

  const std::string out = (std::filesystem::temp_directory_path() / "depthbench_own_design").string();
  return db::app::run({"train", "--force", "--out", out, "residual.design=rezero", "model.d_model=64", "model.n_layers=2",
                       "train.seq_len=64", "train.steps=60", "train.lr=5e-3", "train.global_batch_tokens=1024", "data.held_out=0.01"}, add);
}

// Expected output:
// ok    equals its formula                   error ..., needs 1e-12
// ok    gradient agrees with differences     error ..., needs 1e-07
// ok    every parameter is alive             at a random point
// ok    at initialisation it is as claimed   error ..., needs 1e-12
// ok    reduces to its sibling               error ..., needs 1e-12
// ok    keeps its invariants                 of any design: one token, one order, one result
// ok    every number of threads agrees       error ..., needs ...
// ok    rejects wrong options and shapes     e.g. ...
// ...
// finished: 60 steps in ...
