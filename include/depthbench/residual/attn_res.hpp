// Full Attention Residuals (AttnRes): every sublayer reads a softmax mixture of all earlier outputs.   Kimi Team 2026, arXiv 2603.15031
//
//   z_j = w_k . N_k(v_j)                v_0 the embedding, v_{j+1} the output of sublayer j;  N_k RMSNorm with gain, eps 1e-5
//   u   = N(sum_j softmax_j(z) v_j)     values are not normalised, scores are not scaled; the branch norm has eps 1e-5
//   read-out: one more mixture over all sources.   Sublayer 0 reads N(v_0) with the model's eps: one source, no mixer.
//
//   v_j (N, d)    w_k, gain of N_k (d), one mixer for every sublayer k >= 1 and one for the read-out
//   at initialisation this is   the uniform average of all sources (w = 0); equal to Pre-LN up to eps, since the norm
//   that follows removes the factor 1 / (k + 1).
//   reduces to   Block AttnRes with groups of one sublayer, and that to this.
//   cost per token and sublayer   parameters 3 d; FLOPs 4 (k + 1) d; elements moved forward (k + 2) d for the mixture,
//   saved d + K - k.   Over the model 4 d K^2 / 2 FLOPs: the part that grows with depth squared.
//   source: DepthBench block `attnres`, attnres_block_size = 1.   Departs from the paper: nothing known; eps is the code's.
//   dead at initialisation: the mixers' gains (they are multiplied by the zero queries).
#pragma once
#include "depthbench/residual/depth_mixers.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class AttnRes final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit AttnRes(const DesignOptions& options = {}) { options.expect_only("attn_res", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    mixers_.declare(p, shape);
    norm_eps_ = shape.norm_eps;
  }

  State open(Variable x) override {
    State carry = mixers_.open(*x.tape);
    mixers_.publish(carry, x, 0, 1, mixers_.count());
    return carry;
  }
  Variable read(State& carry, int k) override {
    auto& tape = *carry.values[0].tape;
    if (k == 0) return rms_norm(carry.values[0], tape.use(*gain_[0]), norm_eps_);
    return rms_norm(mixers_.mixture(carry, k), tape.use(*gain_[k]), mixers_.eps);      // (N, d)
  }
  void write(State& carry, Variable y, int k) override { mixers_.publish(carry, y, k + 1, k + 1, mixers_.count()); }  // v_{k+1}
  Variable close(State& carry) override { return mixers_.mixture(carry, mixers_.count()); }
  Variable state(State& carry, int block) override { return read_out(carry, block); }
  double head_eps(const ResidualShape&) const override { return mixers_.eps; }

  Variable read_out(State& carry, int block) override {
    return block == 0 ? carry.values[0] : mixers_.mixture(carry, 2 * block);
  }
  void skip(State& carry, int block, FirstRun first) override {
    if (const Variable x = carry.values[0]; block == 0 && first == FirstRun::embedding)
      mixers_.publish(carry, reshape(x, x.shape()), 2, 2, mixers_.count());
    mixers_.bypass(carry, 2 * block + 2);
  }
  void swap(Parameters<Device, R>& p, int i, int j) override { mixers_.swap(p, i, j); }
  std::optional<Join> join(State& carry, int k) override {
    return mixers_.join(carry, k, [](int output) { return output; });
  }

 private:
  DepthMixers<Device, R> mixers_;
  std::vector<Parameter<R>*> gain_;  // one a sublayer, (d)
  double norm_eps_ = 0;
};

}  // namespace depthbench
