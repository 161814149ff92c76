// The eight tests of a design, tested: each finds the fault that it is there for, and no other test does where none should.
#include "depthbench/testing/check_design.hpp"

#include "tests/catch.hpp"

using namespace depthbench;
using testing::check_design;
using testing::Claims;
using testing::OneToken;

namespace {

enum class Fault {
  none, gradient, dead_parameter, early_read, forgets_when_run_again, tokens_meet, float_differs, any_option, any_rows, any_width
};
Fault fault;

// y = x, with a gradient that is right or half of it
template <class Device, class R> Var<Device, R> passed_on(Var<Device, R> x) {
  auto& tape = *x.tape;
  auto y = tape.make(x.shape());
  std::copy(x.values().begin(), x.values().end(), y.out());
  tape.record(1, [&tape, x, y, factor = fault == Fault::gradient ? R(0.5) : R(1)] {
    const R* dy = tape.grad(y);
    const auto dx = tape.accumulate(x);
    for (std::int64_t i = 0; i < x.numel(); ++i) dx.g[i] = (dx.add ? dx.g[i] : R(0)) + factor * dy[i];
  });
  return y;
}
// y with another order of its elements: for tokens that meet
template <class Device, class R> Var<Device, R> turned(Var<Device, R> y) {
  auto& tape = *y.tape;
  auto z = tape.make(y.shape());
  std::reverse_copy(y.values().begin(), y.values().end(), z.out());
  tape.record(1, [&tape, y, z] {
    const R* dz = tape.grad(z);
    const auto dy = tape.accumulate(y);
    for (std::int64_t i = 0; i < y.numel(); ++i) dy.g[i] = (dy.add ? dy.g[i] : R(0)) + dz[y.numel() - 1 - i];
  });
  return z;
}

// x' = x + N(S(x))
template <class Device, class R> class OuterNorm final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;
  explicit OuterNorm(const DesignOptions& options = {}) {
    if (fault != Fault::any_option) options.expect_only("outer_norm", {});
  }
  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    eps_ = shape.norm_eps;
    if (fault == Fault::dead_parameter) p.declare("unused", {2}, Init::constant(1), Decay::yes, Part::residual);
  }
  State open(Variable x) override { return {{x}, nullptr}; }
  Variable read(State& s, int) override { return passed_on(s.values[0]); }
  void write(State& s, Variable y, int k) override {
    const auto x = s.values[0];
    if (fault == Fault::any_rows && y.rows() != x.rows()) return;
    if (fault == Fault::any_width && y.cols() != x.cols()) return;
    if (fault == Fault::tokens_meet) y = turned(y);
    auto n = rms_norm(y, y.tape->use(*gain_[std::size_t(k)]), eps_);
    if (fault == Fault::float_differs && std::is_same_v<R, float>) n = scale(n, R(1.001));
    if (fault == Fault::forgets_when_run_again) n = scale(n, R(1 + ++runs_));
    s.values[0] = add(x, n);
  }
  Variable advance(State& s, Variable y, int k) override {
    if (fault != Fault::early_read) return Residual<Device, R>::advance(s, y, k);
    const auto u = read(s, k + 1);
    write(s, y, k);
    return u;
  }
  Variable close(State& s) override { return s.values[0]; }
  Variable state(State& s, int) override { return s.values[0]; }

 private:
  std::vector<Parameter<R>*> gain_;
  double eps_ = 0;
  int runs_ = 0;
};

Claims right_claims() {
  Claims claims;
  claims.formula = claims.at_initialisation = [](OneToken& t) {
    auto x = t.embedding();
    for (int k = 0; k < t.sublayers(); ++k) {
      const auto y = t.norm(t.branch(k, x), t.gain(k));
      for (int c = 0; c < t.width(); ++c) x[std::size_t(c)] += y[std::size_t(c)];
    }
    return x;
  };
  claims.sibling = [] { return std::make_unique<OuterNorm<Cpu, double>>(); };
  claims.reduce = [](auto&) {};
  return claims;
}
std::string failing(Fault f, const Claims& claims = right_claims()) {
  fault = f;
  std::string names;
  for (const auto& line : check_design<OuterNorm>(claims).lines)
    if (!line.passed) names += line.name + ": " + line.detail + "\n";
  fault = Fault::none;
  return names;
}

}  // namespace

TEST_CASE("check_design: a right design passes eight tests", "[testing]") {
  fault = Fault::none;
  const auto report = check_design<OuterNorm>(right_claims());
  CAPTURE(report.text());
  CHECK(report.passed());
  CHECK(report.lines.size() == 8);
  CHECK(report.text().starts_with("ok    equals its formula                   error "));
  CHECK_FALSE(testing::DesignReport{}.passed());  // no test is no pass
}

TEST_CASE("check_design: each fault is found by its own test, and by no other", "[testing]") {
  using Catch::Contains;
  CHECK_THAT(failing(Fault::gradient),
             Catch::StartsWith("gradient agrees with differences: error") && Contains("worst in") && !Contains("\nevery"));
  CHECK(failing(Fault::dead_parameter) == "every parameter is alive: dead: unused[0] \n");
  CHECK(failing(Fault::any_option) == "rejects wrong options and shapes: an unknown option is not refused by name\n");
  CHECK(failing(Fault::any_rows) == "rejects wrong options and shapes: write takes y of shape (8, 5)\n");
  CHECK(failing(Fault::any_width) == "rejects wrong options and shapes: write takes y of shape (7, 6)\n");
  CHECK_THAT(failing(Fault::float_differs), Catch::StartsWith("every number of threads agrees: error"));
}

TEST_CASE("check_design: faults of the verbs break the formula, and their invariant is named", "[testing]") {
  using Catch::Contains;
  CHECK_THAT(failing(Fault::early_read),
             Contains("equals its formula") && Contains("keeps its invariants: advance is not write, then read"));
  CHECK_THAT(failing(Fault::tokens_meet),
             Contains("equals its formula") && Contains("keeps its invariants: the first token changes others"));
  CHECK_THAT(failing(Fault::forgets_when_run_again), Contains("keeps its invariants: recomputed gradients have other bits"));
}

TEST_CASE("check_design: claims that are wrong or missing fail", "[testing]") {
  const auto other = [](OneToken& t) { return t.embedding(); };
  auto claims = right_claims();
  claims.formula = other;
  CHECK_THAT(failing(Fault::none, claims), Catch::StartsWith("equals its formula: error") && !Catch::Contains("\nat"));
  claims = right_claims();
  claims.at_initialisation = other;
  CHECK_THAT(failing(Fault::none, claims), Catch::StartsWith("at initialisation it is as claimed: error"));
  claims = right_claims();
  claims.reduce = [](auto& chain) { *chain.find(chain.gain_name(2)) = 2; };
  claims.sibling = [] {
    struct Silent : Residual<Cpu, double> {
      void declare(Parameters<Cpu, double>&, const ResidualShape&) override {}
      State open(Variable x) override { return {{x}, nullptr}; }
      Variable read(State& s, int) override { return s.values[0]; }
      void write(State&, Variable, int) override {}
      Variable close(State& s) override { return s.values[0]; }
      Variable state(State& s, int) override { return s.values[0]; }
    };
    return std::make_unique<Silent>();
  };
  CHECK_THAT(failing(Fault::none, claims), Catch::StartsWith("reduces to its sibling: error"));
  claims = right_claims();
  claims.invariant = [](auto&) { return 1.0; };
  CHECK(failing(Fault::none, claims) == "keeps its invariants: error 1e+00, needs 1e-12\n");
  claims = right_claims();
  claims.dead = "gain ";
  CHECK(failing(Fault::none, claims) == "every parameter is alive: at a random point\n");
  CHECK(failing(Fault::none, {}) ==
        "equals its formula: claims.formula is empty\nat initialisation it is as claimed: claims.at_initialisation is empty\n"
        "reduces to its sibling: claims.sibling or claims.reduce is empty\n");
}
