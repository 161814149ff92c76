// What the tests of designs with one stream share: a token carried through plain loops.
#pragma once
#include "tests/residual/chain.hpp"

namespace depthbench_test {

struct Trace {
  std::vector<double> out;
  std::vector<std::vector<double>> states;
};

// x <- next(x, k) for all sublayers of every token; the states are x before every block and after the last.
template <class Next> Trace one_stream(Chain& c, Next next) {
  Trace trace{{}, std::vector<std::vector<double>>(std::size_t(c.sublayers / 2 + 1))};
  for (int t = 0; t < c.n; ++t) {
    auto x = c.token(c.x(), t);
    for (int k = 0; k <= c.sublayers; ++k) {
      if (k % 2 == 0) trace.states[std::size_t(k / 2)].insert(trace.states[std::size_t(k / 2)].end(), x.begin(), x.end());
      if (k < c.sublayers) x = next(x, k);
    }
    trace.out.insert(trace.out.end(), x.begin(), x.end());
  }
  return trace;
}

inline Chain::Row sum_of(double a, const Chain::Row& x, const Chain::Row& y) {  // a x + y
  auto s = y;
  for (std::size_t i = 0; i < s.size(); ++i) s[i] += a * x[i];
  return s;
}
inline std::string outer_name(int k) { return fmt::format("blocks.{}.post_{}_norm.weight", k / 2, k % 2 ? "feed_forward" : "attention"); }

// Largest error of read-out and states of a run against a trace.
inline double error_of_run(Chain& c, const Trace& needs) {
  const double out = error_of(c.run().values(), needs.out);
  return std::max(out, largest(c.states, needs.states));
}
// Gradients of the two verbs one after the other against both at once; recomputed against kept must be the same bits.
inline double error_of_verbs(Chain& c) {
  const auto kept = c.gradients(Verbs::advance, Keep::everything);
  if (c.gradients(Verbs::advance, Keep::recomputed) != kept) return INFINITY;
  return largest(c.gradients(Verbs::write_then_read, Keep::everything), kept);
}

}  // namespace depthbench_test
