// The eight tests of a design, and what they are for: two mistakes of a kind that published code has made. Both
// models train and their losses fall, so that a curve tells nothing. The tests do.
#include "depthbench/testing/check_design.hpp"

namespace db = depthbench;
using db::testing::OneToken;

// One stream, and a norm after the branch only:   x' = x + N(S(x))
template <class Device, class R> class OuterNorm : public db::Residual<Device, R> {
 public:
  using typename db::Residual<Device, R>::Variable;
  using typename db::Residual<Device, R>::State;
  explicit OuterNorm(const db::DesignOptions& options = {}) { options.expect_only("outer_norm", {}); }
  void declare(db::Parameters<Device, R>& p, const db::ResidualShape& shape) override {
    gain_ = db::declare_branch_norms(p, shape);
    eps_ = shape.norm_eps;
  }
  State open(Variable x) override { return {{x}, nullptr}; }  // (N, d)
  Variable read(State& s, int) override { return s.values[0]; }
  void write(State& s, Variable y, int k) override { s.values[0] = db::add(s.values[0], normed(y, k)); }
  Variable close(State& s) override { return s.values[0]; }
  Variable state(State& s, int) override { return s.values[0]; }

 protected:
  Variable normed(Variable y, int k) { return db::rms_norm(y, y.tape->use(*gain_[k]), eps_); }
  std::vector<db::Parameter<R>*> gain_;  // one a sublayer, (d)
  double eps_ = 0;
};

template <class Device, class R> struct NormLost : OuterNorm<Device, R> {  // makes the norm, and adds the branch without it
  using OuterNorm<Device, R>::OuterNorm;
  void write(db::Carry<Device, R>& s, db::Var<Device, R> y, int k) override {
    this->normed(y, k);
    s.values[0] = db::add(s.values[0], y);
  }
};
template <class Device, class R> struct EarlyRead : OuterNorm<Device, R> {  // joins write and read, in the wrong order
  using OuterNorm<Device, R>::OuterNorm;
  db::Var<Device, R> advance(db::Carry<Device, R>& s, db::Var<Device, R> y, int k) override {
    const auto u = this->read(s, k + 1);
    this->write(s, y, k);
    return u;
  }
};

template <template <class, class> class Design> void show(const char* name) {
  db::testing::Claims claims;
  claims.formula = claims.at_initialisation = [](OneToken& t) {  // the read-out of one token, by plain loops
    auto x = t.embedding();
    for (int k = 0; k < t.sublayers(); ++k) {
      const auto y = t.norm(t.branch(k, x), t.gain(k));
      for (int c = 0; c < t.width(); ++c) x[c] += y[c];
    }
    return x;
  };
  claims.sibling = [] { return std::make_unique<OuterNorm<db::Cpu, double>>(); };
  claims.reduce = [](auto&) {};  // is it: nothing to set
  fmt::print("{}\n", name);
  for (const auto& line : db::testing::check_design<Design>(claims).lines)
    if (!line.passed) fmt::print("  {:<35} {}\n", line.name, line.detail.substr(0, line.detail.find("[0]")));
}

int main() {
  show<OuterNorm>("as it should be");
  show<NormLost>("a norm that is made and lost");
  show<EarlyRead>("a read before the write");
}

// Expected output:
// as it should be
// a norm that is made and lost
//   equals its formula                  error ..., needs 1e-12
//   every parameter is alive            dead: blocks.0.attention_norm.weight
//   at initialisation it is as claimed  error ..., needs 1e-12
//   reduces to its sibling              error ..., needs 1e-12
// a read before the write
//   equals its formula                  error ..., needs 1e-12
//   at initialisation it is as claimed  error ..., needs 1e-12
//   reduces to its sibling              error ..., needs 1e-12
//   keeps its invariants                advance is not write, then read
