// The eight tests that every design of this library passes, for a design of your own:
//
//   db::testing::Claims claims;                             // what only its author can say, one token at a time
//   claims.formula = [](db::testing::OneToken& t) { ... };     // the read-out, by plain loops in double
//   const auto report = db::testing::check_design<MyDesign>(claims);
//   fmt::print("{}", report.text());                        // report.passed()
//
// The design stands between branches that are plain matrices (testing/chain.hpp). One that also keeps keys over depth needs
// a test of its attention beside these.
#pragma once
#include <functional>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/testing/chain.hpp"

namespace depthbench::testing {

// One token on its way through a chain: what a formula may ask for.
struct OneToken {
  using Row = std::vector<double>;
  Chain<Cpu, double>& chain;
  int index;
  int width() const { return chain.d; }
  int sublayers() const { return chain.sublayers; }
  Row embedding() const { return chain.token(chain.x(), index); }
  Row branch(int k, const Row& u) const { return chain.times_branch(k, u); }                 // S_k(u)
  Row norm(const Row& x, const double* gain) const { return chain.norm(x, gain, chain.norm_eps); }
  const double* parameter(const std::string& name) const { return chain.at(name); }
  const double* gain(int k) const { return chain.at(chain.gain_name(k)); }                  // of sublayer k's norm
};

struct Claims {
  using Formula = std::function<std::vector<double>(OneToken&)>;
  Formula formula;                                              // the read-out of a token
  Formula at_initialisation;                                    // what that is before training
  std::function<std::unique_ptr<Residual<Cpu, double>>()> sibling;  // the design it reduces to ...
  std::function<void(Chain<Cpu, double>&)> reduce;                  // ... with its parameters set like this
  std::function<double(Chain<Cpu, double>&)> invariant;             // of its own, if it has one: how far it is from holding
  DesignOptions options;
  std::string dead;                                             // names of parameters that are dead by structure
};

struct DesignReport {
  struct Line {
    std::string name, detail;
    bool passed;
  };
  std::vector<Line> lines;
  bool passed() const {
    for (const Line& l : lines) if (!l.passed) return false;
    return !lines.empty();
  }
  std::string text() const {
    std::string s;
    for (const Line& l : lines) s += fmt::format("{:<5} {:<36} {}\n", l.passed ? "ok" : "FAILS", l.name, l.detail);
    return s;
  }
};

namespace detail {

constexpr int check_tokens = 7, check_width = 5, check_sublayers = 6;  // odd, and no multiple of a register
constexpr double check_eps = 1e-2;                                     // large, so that its place shows

template <class Design, class R> Chain<Cpu, R> chain_of(const DesignOptions& options, int threads = 2) {
  return {std::make_unique<Design>(options), check_tokens, check_width, check_sublayers, check_eps, threads};
}
// Of the read-out against a formula, over all tokens.
inline double formula_error(Chain<Cpu, double>& c, const Claims::Formula& formula) {
  std::vector<double> needs;
  for (int t = 0; t < c.n; ++t) {
    OneToken token{c, t};
    const auto row = formula(token);
    needs.insert(needs.end(), row.begin(), row.end());
  }
  return error_of(copy_of(c.run()), needs);
}
// What f() says when it throws an Error, or nothing.
template <class Error, class F> std::string refusal(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}
template <class R> std::vector<std::vector<double>> doubles(const std::vector<std::vector<R>>& from) {
  std::vector<std::vector<double>> to;
  for (const auto& v : from) to.emplace_back(v.begin(), v.end());
  return to;
}

}  // namespace detail

// Design<Cpu, double> and Design<Cpu, float> are made with claims.options.
template <template <class, class> class Design> DesignReport check_design(const Claims& claims) {
  using namespace detail;
  using Double = Design<Cpu, double>;
  const auto fresh = [&] { return chain_of<Double, double>(claims.options); };
  DesignReport report;
  const auto test = [&](const char* name, auto body) {  // body: detail and verdict
    try {
      const auto [detail, passed] = body();
      report.lines.push_back({name, detail, passed});
    } catch (const std::exception& e) {
      report.lines.push_back({name, e.what(), false});
    }
  };
  using Said = std::pair<std::string, bool>;
  const auto within = [](double error, double limit) {
    return Said{fmt::format("error {:.0e}, needs {:.0e}", error, limit), error < limit};
  };

  test("equals its formula", [&] {
    if (!claims.formula) return Said{"claims.formula is empty", false};
    auto c = fresh();
    c.randomize();
    return within(formula_error(c, claims.formula), 1e-12);
  });
  test("gradient agrees with differences", [&] {
    auto c = fresh();
    c.randomize();
    const GradCheck g = c.b.check([&] { return probe(c.run()); });
    Said said = within(g.worst, 1e-7);
    if (!said.second) said.first += ", worst in " + g.parameter;
    return said;
  });
  test("every parameter is alive", [&] {
    auto c = fresh();
    c.randomize();
    const std::string dead = c.dead();
    return Said{dead.empty() ? "at a random point" : "dead: " + dead, dead == claims.dead};
  });
  test("at initialisation it is as claimed", [&] {
    if (!claims.at_initialisation) return Said{"claims.at_initialisation is empty", false};
    auto c = fresh();
    return within(formula_error(c, claims.at_initialisation), 1e-12);
  });
  test("reduces to its sibling", [&] {
    if (!claims.sibling || !claims.reduce) return Said{"claims.sibling or claims.reduce is empty", false};
    auto c = fresh();
    c.randomize();
    claims.reduce(c);
    Chain<Cpu, double> other(claims.sibling(), c.n, c.d, c.sublayers, c.norm_eps);
    for (auto& p : other.b.parameters.list())
      if (const auto* same = c.b.parameters.find(p.name)) std::copy(same->values().begin(), same->values().end(), p.value);
    return within(error_of(copy_of(c.run()), copy_of(other.run())), 1e-12);
  });
  test("keeps its invariants", [&] {
    auto c = fresh();
    c.randomize();
    const auto kept = c.gradients(Verbs::advance, Keep::everything);
    if (c.gradients(Verbs::advance, Keep::recomputed) != kept) return Said{"recomputed gradients have other bits", false};
    if (!(largest(c.gradients(Verbs::write_then_read, Keep::everything), kept) < 1e-11))
      return Said{"advance is not write, then read", false};
    const auto before = copy_of(c.run());
    for (int i = 0; i < c.d; ++i) c.b.at(0).value[i] += 1;
    const auto after = copy_of(c.run());
    for (std::size_t i = std::size_t(c.d); i < before.size(); ++i)
      if (before[i] != after[i]) return Said{"the first token changes others", false};
    return claims.invariant ? within(claims.invariant(c), 1e-12) : Said{"of any design: one token, one order, one result", true};
  });
  test("every number of threads agrees", [&] {
    auto one = chain_of<Double, double>(claims.options, 1), three = chain_of<Double, double>(claims.options, 3);
    for (auto* c : {&one, &three}) c->randomize();
    if (one.gradients(Verbs::advance, Keep::everything) != three.gradients(Verbs::advance, Keep::everything))
      return Said{"1 and 3 threads give other bits", false};
    // float: the roundings of some operations a sublayer, as far as the design carries them (seen by disturbing it in double)
    auto f = chain_of<Design<Cpu, float>, float>(claims.options);
    f.randomize();
    for (auto& p : one.b.parameters.list()) for (std::int64_t i = 0; i < p.numel(); ++i) p.value[i] = double(float(p.value[i]));
    const auto exact = copy_of(one.run());
    const auto z = random_numbers(exact.size(), 3);
    for (auto& p : one.b.parameters.list())
      for (std::int64_t i = 0; i < p.numel(); ++i) p.value[i] *= 1 + 0x1p-20 * z[std::size_t(i) % z.size()];
    const double carried = error_of(copy_of(one.run()), exact) * 0x1p20;
    return within(error_of(copy_of(f.run()), exact), 4 * (2 * check_sublayers + 4) * (1 + carried) * 0x1p-24);
  });
  test("rejects wrong options and shapes", [&] {
    DesignOptions unknown = claims.options;
    unknown.set("no_such_option", 1);
    if (refusal<config_error>([&] { Double{unknown}; }).find("no_such_option") == std::string::npos)
      return Said{"an unknown option is not refused by name", false};
    std::string said;
    for (const Shape shape : {Shape{check_tokens, check_width + 1}, Shape{check_tokens + 1, check_width}}) {
      auto c = fresh();
      const std::vector<double> zeros(std::size_t(shape.numel()));
      auto carry = c.design->open(c.b.var(0));
      c.design->read(carry, 0);
      said = refusal<shape_error>([&] { c.design->write(carry, c.b.tape.constant(zeros.data(), shape), 0); });
      if (said.empty()) return Said{"write takes y of shape " + shape.text(), false};
    }
    return Said{"e.g. " + said, true};
  });
  return report;
}

}  // namespace depthbench::testing
