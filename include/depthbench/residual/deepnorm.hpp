// DeepNorm: Post-LN with a weighted stream and small initial branches.            Wang et al. 2022, arXiv 2203.00555, fig. 2
//
//   x_{k+1} = LN_k(alpha x_k + S_k(x_k)),   alpha = (2 L)^(1/4)
//
//   x (N, d)    LN_k LayerNorm (mean subtracted) with gain (d), no bias.   The branch reads the raw stream.
//   at initialisation this is   no Pre-LN: W_v, W_out, W1, W2, W3 start at beta = (8 L)^(-1/4) times the common std.
//   reduces to   Post-LN when alpha = beta = 1.
//   cost per token and sublayer   parameters d; FLOPs 9 d; elements moved forward 3 d, saved 2 d.
//   source: OLMo-core block `deepnorm`.   Departs from the paper: the last norm stays, as RMSNorm; normal initial values.
//   dead at initialisation: nothing.
#pragma once
#include <cmath>

#include "depthbench/op/layer_norm.hpp"
#include "depthbench/residual/one_stream.hpp"

namespace depthbench {

template <class Device, class R> class DeepNorm final : public OneStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit DeepNorm(const DesignOptions& options = {}) { options.expect_only("deepnorm", {}); }

  void configure(const ResidualShape& shape) override {
    alpha_ = std::pow(double(shape.sublayers), 0.25);           // K = 2 L
    beta_ = std::pow(4.0 * double(shape.sublayers), -0.25);
    eps_ = shape.norm_eps;
  }
  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override { gain_ = declare_branch_norms(p, shape); }
  Variable read(State& carry, int) override { return carry.values[0]; }
  void write(State& carry, Variable y, int k) override {
    carry.values[0] = add_layer_norm(carry.values[0], y, y.tape->use(*gain_[k]), eps_, alpha_);
  }

  double init_scale(Weight w) const override { return w == Weight::q || w == Weight::k ? 1 : beta_; }

 private:
  std::vector<Parameter<R>*> gain_;  // one a sublayer, (d)
  double alpha_ = 1, beta_ = 1, eps_ = 0;
};

}  // namespace depthbench
