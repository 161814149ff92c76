// Full Attention Residuals (AttnRes): every sublayer reads a softmax mixture of all earlier outputs.   Kimi Team 2026
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
#include "depthbench/op/depth_softmax.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class AttnRes final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit AttnRes(const DesignOptions& options = {}) { options.expect_only("attn_res", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    sublayers_ = shape.sublayers;
    norm_eps_ = shape.norm_eps;
    gain_ = declare_branch_norms(p, shape);
    for (int k = 1; k <= sublayers_; ++k) {                                    // mixer k feeds sublayer k; K: the read-out
      const std::string at = k == sublayers_ ? "res" : fmt::format("blocks.{}.{}_res", k / 2, k % 2 == 0 ? "attn" : "mlp");
      query_.push_back(&p.declare(at + "_proj.weight", {1, shape.d}, Init::constant(0), Decay::yes, Part::residual));
      key_gain_.push_back(&p.declare(at + "_norm.weight", {shape.d}, Init::constant(1), Decay::yes, Part::residual));
    }
  }

  // carry: three values a source: v (N, d), 1 / rms (N), its logits for later mixers (mixers, N)
  State open(Variable x) override {
    std::vector<Variable> w, g;
    for (const auto* q : query_) w.push_back(x.tape->use(const_cast<Parameter<R>&>(*q)));
    for (const auto* q : key_gain_) g.push_back(x.tape->use(const_cast<Parameter<R>&>(*q)));
    State carry{{}, std::make_shared<Bank>(mixer_keys(w, g), eps)};
    publish(carry, x);
    return carry;
  }
  Variable read(State& carry, int k) override {
    auto& tape = *carry.values[0].tape;
    if (k == 0) return rms_norm(carry.values[0], tape.use(*gain_[0]), norm_eps_);
    return rms_norm(mixture(carry, k), tape.use(*gain_[k]), eps);              // (N, d)
  }
  void write(State& carry, Variable y, int) override { publish(carry, y); }
  Variable close(State& carry) override { return mixture(carry, sublayers_); }
  Variable state(State& carry, int block) override { return block == 0 ? carry.values[0] : mixture(carry, 2 * block); }
  double head_eps(const ResidualShape&) const override { return eps; }

 private:
  using Bank = DepthBank<Device, R>;
  static constexpr double eps = 1e-5;  // of mixers and of the norms that follow them: OLMo-core's default, not the model's

  static Bank& bank(State& carry) { return *static_cast<Bank*>(carry.shared.get()); }
  static int first_reader(int source) { return source == 0 ? 0 : source - 1; }  // the bank counts mixers from 0
  void publish(State& carry, Variable v) const {                               // source j is read by the mixers j .. K
    const int j = int(carry.values.size()) / 3;
    const auto s = bank(carry).publish(v, j, first_reader(j), sublayers_ - 1);
    carry.values.insert(carry.values.end(), {s.v, s.r, s.logit});
  }
  Variable mixture(State& carry, int k) const {
    std::vector<typename Bank::Source> sources;
    for (int j = 0; j < int(carry.values.size()) / 3; ++j)
      sources.push_back({carry.values[3 * j], carry.values[3 * j + 1], carry.values[3 * j + 2], j, first_reader(j), sublayers_ - 1});
    return bank(carry).read(sources, k - 1);
  }

  int sublayers_ = 0;
  double norm_eps_ = 0;
  std::vector<Parameter<R>*> gain_;              // one a sublayer, (d)
  std::vector<Parameter<R>*> query_, key_gain_;  // of mixers 1 .. K, (1, d) and (d)
};

}  // namespace depthbench
