// Mixture of Depths Attention (MoDA), pre-norm form: Pre-LN whose attention also reads earlier layers.   hustvl 2026, arXiv 2603.15619
//
//   x_{k+1} = x_k + S_k(N_k(x_k));   attention of block i has one softmax over its causal keys and 2 i depth slots of the
//   same token:   slot 2j     the keys and values of attention j, keys before rotation
//                 slot 2j + 1 W_kv N(x) of FFN j, from the same normed input as the FFN; keys in the first half of the rows
//
//   x (N, d)    W_kv (2 kv, d), one for every block but the last.   Depth keys are not rotated, queries are.
//   at initialisation this is   not Pre-LN: the slots take part in the softmax from the start.
//   reduces to   Pre-LN when L = 1.
//   cost per token and sublayer   parameters d + kv d (FFN: 2 kv d); FLOPs 4 d (2 i) in the attention of block i and 4 kv d of
//   projection; elements moved forward 4 d and 2 (2 i) kv slots read, saved 2 d + 2 kv.
//   source: DepthBench block `moda`.   Departs from the paper: the pre-norm form is the one compared.
//   dead: nothing; the last block has no W_kv.
#pragma once
#include "depthbench/op/linear.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/residual/one_stream.hpp"

namespace depthbench {

template <class Device, class R> class Moda final : public AddingStream<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  explicit Moda(const DesignOptions& options = {}) { options.expect_only("moda", {}); }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    gain_ = declare_branch_norms(p, shape);
    for (int i = 0; i + 1 < shape.sublayers / 2; ++i)
      kv_.push_back(&p.declare(sublayer_name(2 * i + 1) + ".kv_proj.weight", {2 * shape.kv_width, shape.d}, Init::truncated_normal(0.02),
                               Decay::yes, Part::residual));
    kv_width_ = shape.kv_width;
    eps_ = shape.norm_eps;
  }

  // carry: x (N, d), then for every block passed k, v (N, kv) and the FFN's keys and values side by side (N, 2 kv)
  Variable read(State& carry, int k) override {
    const Variable x = carry.values[0];
    return leave_ffn_keys(carry, rms_norm(x, x.tape->use(*gain_[k]), eps_), k);                  // (N, d)
  }

  Variable advance(State& carry, Variable y, int k) override {
    const auto [next, u] = add_rms_norm(carry.values[0], y, y.tape->use(*gain_[k + 1]), eps_);
    carry.values[0] = next;
    return leave_ffn_keys(carry, u, k + 1);
  }

  std::vector<DepthSlotVar<Device, R>> depth_slots(State& carry, int) override {
    std::vector<DepthSlotVar<Device, R>> slots;
    const auto& v = carry.values;
    for (std::size_t i = 1; i + 2 < v.size(); i += 3) {
      slots.push_back({v[i], v[i + 1]});
      slots.push_back({v[i + 2], v[i + 2], 0, kv_width_});
    }
    return slots;
  }
  void leave_keys(State& carry, Variable k, Variable v, int) override { carry.values.insert(carry.values.end(), {k, v}); }

  void skip(State& carry, int block, FirstRun) override {  // its slots stay in the softmax, as zeros
    const std::int64_t n = carry.values[0].rows();
    for (const std::int64_t width : {kv_width_, kv_width_, 2 * kv_width_}) {
      if (std::size_t(block) == kv_.size() && width == 2 * kv_width_) break;
      carry.values.push_back(zeros(*carry.values[0].tape, {n, width}));
    }
  }

  std::string branch_name(int k) const override { return sublayer_name(k) + (k % 2 == 0 ? ".attention" : ".feed_forward"); }

 private:
  Variable leave_ffn_keys(State& carry, Variable u, int k) const {
    if (k % 2 == 1 && std::size_t(k / 2) < kv_.size()) carry.values.push_back(linear(u, u.tape->use(*kv_[k / 2])));  // (N, 2 kv)
    return u;
  }

  std::vector<Parameter<R>*> gain_, kv_;  // (d) a sublayer; (2 kv, d) a block but the last
  int kv_width_ = 0;
  double eps_ = 0;
};

}  // namespace depthbench
