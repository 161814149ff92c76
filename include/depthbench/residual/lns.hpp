// LayerNorm Scaling (LNS): Pre-LN whose norms shrink with depth.                  Sun et al. 2025, arXiv 2502.05795
//
//   x_{k+1} = x_k + S_k(s_i N_k(x_k)),   s_i = 1 / sqrt(i + 1),  i = floor(k / 2) the block, counted from 0
//
//   x (N, d)    N_k RMSNorm with gain (d)    s_i a constant; not on the last norm
//   at initialisation this is   Pre-LN with the gains of block i at s_i.
//   reduces to   Pre-LN when L = 1.
//   cost per token and sublayer   parameters d; FLOPs 6 d; elements moved forward 4 d, saved 2 d.
//   source: OLMo-core block `default_scaled`.   Departs from the paper: RMSNorm in place of LayerNorm.
//   dead at initialisation: nothing.
#pragma once
#include <cmath>

#include "depthbench/residual/one_stream.hpp"

namespace depthbench {

template <class Device, class R> class Lns final : public AddingStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit Lns(const DesignOptions& options = {}) { options.expect_only("lns", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    for (int i = 0; i < shape.sublayers / 2; ++i) factor_.push_back(1 / std::sqrt(double(i + 1)));
    eps_ = shape.norm_eps;
  }
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0];
    return rms_norm(x, x.tape->use(*gain_[k]), eps_, factor_[k / 2]);                 // (N, d)
  }

  Variable advance(State& carry, Variable y, int k) override {
    const auto [next, u] = add_rms_norm(carry.values[0], y, y.tape->use(*gain_[k + 1]), eps_, factor_[(k + 1) / 2]);
    carry.values[0] = next;
    return u;
  }

  void swap(Parameters<Device, R>& p, int i, int j) override {  // the factor is a property of the block, though no parameter
    exchange_blocks(p, i, j);
    std::swap(factor_[i], factor_[j]);
  }

 private:
  std::vector<Parameter<R>*> gain_;  // one a sublayer, (d)
  std::vector<double> factor_;       // s_i, one a block
  double eps_ = 0;
};

}  // namespace depthbench
