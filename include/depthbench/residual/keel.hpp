// KEEL: Post-LN with a strong stream and an inner norm.                           arXiv 2601.19895
//
//   k = 0:   x_1 = x_0 + S_0(N_0(x_0))
//   k = 1:   x_2 = N'_1(x_1 + S_1(N_1(x_1)))
//   k > 1:   x_{k+1} = N'_k(alpha x_k + S_k(N_k(x_k))),   alpha = 2 L = K
//
//   x (N, d)    N_k, N'_k RMSNorm with gain (d); there is no N'_0
//   at initialisation this is   no Pre-LN: the stream is normed after every sublayer but the first.
//   cost per token and sublayer   parameters 2 d; FLOPs 11 d; elements moved forward 4 d, saved 2 d.
//   source: DepthBench block `keel`.   Departs from the paper: the last norm stays; the initial values are the common ones.
//   dead at initialisation: nothing.
#pragma once
#include "depthbench/residual/one_stream.hpp"

namespace depthbench {

template <class Device, class R> class Keel final : public OneStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit Keel(const DesignOptions& options = {}) { options.expect_only("keel", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    outer_ = declare_outer_norms(p, shape, 1);
    alpha_ = shape.sublayers;
    eps_ = shape.norm_eps;
  }
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0];
    return rms_norm(x, x.tape->use(*gain_[k]), eps_);                            // (N, d)
  }
  void write(State& carry, Variable y, int k) override {
    Variable& x = carry.values[0];
    x = k == 0 ? add(x, y) : post_norm_write(x, y, y.tape->use(*outer_[k]), eps_, weight(k));
  }

  Variable advance(State& carry, Variable y, int k) override {
    auto& tape = *y.tape;
    const Variable x = carry.values[0], g = tape.use(*gain_[k + 1]);
    const auto [next, u] = k == 0 ? add_rms_norm(x, y, g, eps_) : post_norm_advance(x, y, tape.use(*outer_[k]), g, eps_, weight(k));
    carry.values[0] = next;
    return u;
  }

 private:
  double weight(int k) const { return k == 1 ? 1 : alpha_; }

  std::vector<Parameter<R>*> gain_, outer_;  // one a sublayer, (d); outer_[0] is null
  double alpha_ = 1, eps_ = 0;
};

}  // namespace depthbench
