// What one pass does, by whose work it is: a profile's tallies (core/profile.hpp) under the headings of an account.
//   FLOPs: +, *, / and every function count as one, a multiply-add as two.   bytes: each array once a pass
#pragma once
#include "depthbench/core/profile.hpp"

namespace depthbench {

// FLOPs, bytes moved, or seconds, of one pass.
struct Work {
  double gemm = 0;        // matrix products of attention and FFN
  double attention = 0;   // scores, softmax and weighted sums over the past; half of the square, T / 2 keys a query
  double residual = 0;    // all that the design does but norms: its products, mixing, coefficients, additions, depth slots
  double residual_gemm = 0, residual_attention = 0;  // of which matrix products, and attention over depth
  double norms = 0;       // sums of squares and scaling, of branch norms, streams, sources and the last norm
  double head = 0;        // the product with the vocabulary
  double other = 0;       // SwiGLU, cross-entropy, embedding
  double body() const { return gemm + attention; }
  double total() const { return body() + residual + norms + head + other; }
  double attention_share() const { return attention / body(); }
};

struct BothPasses {
  Work forward, backward;
};

// what: &Tally::flops, &Tally::bytes, &Tally::time_s.   sequences: how many the profile saw; the result is of one
inline Work work_of(const Profile& profile, Pass pass, double Tally::*what, double sequences) {
  const auto at = [&](Part part, Section s) { return profile.at(part, pass, s).*what / sequences; };
  const auto all = [&](Part part) {
    double sum = 0;
    for (int s = 0; s < section_count; ++s) if (Section(s) != Section::optimizer) sum += at(part, Section(s));
    return sum;
  };
  Work w;
  w.gemm = at(Part::backbone, Section::gemm);
  w.attention = at(Part::backbone, Section::attention);
  w.residual = all(Part::residual);
  w.residual_gemm = at(Part::residual, Section::gemm);
  w.residual_attention = at(Part::residual, Section::attention);
  w.norms = all(Part::norm);
  w.head = at(Part::head, Section::gemm);
  w.other = all(Part::backbone) - w.body() + all(Part::head) - w.head + all(Part::embedding);
  return w;
}

}  // namespace depthbench
