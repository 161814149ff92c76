// Sandwich-LN (Peri-LN): one stream, a norm before and after every branch.        Ding et al. 2021, arXiv 2105.13290; Kim et al. 2025, arXiv 2502.02732
//
//   x_{k+1} = x_k + N'_k(S_k(N_k(x_k)))
//
//   x (N, d)    N_k, N'_k RMSNorm with gain (d)
//   at initialisation this is   Pre-LN with every update scaled to root mean square 1.
//   invariant: the update does not change when the branch's output projection is scaled (eps aside).
//   cost per token and sublayer   parameters 2 d; FLOPs 10 d; elements moved forward 4 d, saved 2 d.
//   source: OLMo-core block `peri_norm`.   Departs from the paper: no norm of the embedding.
//   dead at initialisation: nothing.
#pragma once
#include "depthbench/residual/one_stream.hpp"

namespace depthbench {

template <class Device, class R> class SandwichLn final : public OneStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit SandwichLn(const DesignOptions& options = {}) { options.expect_only("sandwich_ln", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    outer_ = declare_outer_norms(p, shape, 0);
    eps_ = shape.norm_eps;
  }
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0];
    return rms_norm(x, x.tape->use(*gain_[k]), eps_);                            // (N, d)
  }
  void write(State& carry, Variable y, int k) override {
    carry.values[0] = sandwich_write(carry.values[0], y, y.tape->use(*outer_[k]), eps_);
  }

  Variable advance(State& carry, Variable y, int k) override {
    auto& tape = *y.tape;
    const auto [next, u] = sandwich_advance(carry.values[0], y, tape.use(*outer_[k]), tape.use(*gain_[k + 1]), eps_);
    carry.values[0] = next;
    return u;
  }

  std::optional<Join> join(State& carry, int) override {  // of the outputs after their outer norm
    return Join::additive(std::size_t(carry.values[0].rows()));
  }

 private:
  std::vector<Parameter<R>*> gain_, outer_;  // one a sublayer, (d)
  double eps_ = 0;
};

}  // namespace depthbench
