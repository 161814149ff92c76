// Pre-LN: one stream, every sublayer adds to it.                         Xiong et al. 2020, arXiv 2002.04745, fig. 1 (b)
//
//   x_{k+1} = x_k + S_k(N_k(x_k))
//
//   x (N, d)    N_k RMSNorm with gain (d), eps inside the root
//   at initialisation this is   itself: the yardstick of the other nine.
//   cost per token and sublayer   parameters d; FLOPs 6 d; elements moved forward 4 d (x, y read, x, u written), saved 2 d.
//   source: OLMo-core block `default`.   Departs from the paper: RMSNorm in place of LayerNorm.
//   dead at initialisation: nothing.
#pragma once
#include "depthbench/residual/one_stream.hpp"

namespace depthbench {

template <class Device, class R> class PreLn final : public AddingStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit PreLn(const DesignOptions& options = {}) { options.expect_only("pre_ln", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    eps_ = shape.norm_eps;
  }
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0];
    return rms_norm(x, x.tape->use(*gain_[k]), eps_);                            // (N, d)
  }

  Variable advance(State& carry, Variable y, int k) override {
    const Variable x = carry.values[0];
    const auto [next, u] = add_rms_norm(x, y, x.tape->use(*gain_[k + 1]), eps_);
    carry.values[0] = next;
    return u;
  }

 private:
  std::vector<Parameter<R>*> gain_;  // one a sublayer, (d)
  double eps_ = 0;
};

}  // namespace depthbench
