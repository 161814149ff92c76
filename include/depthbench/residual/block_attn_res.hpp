// Block AttnRes: outputs are summed within groups of S sublayers; every sublayer reads a mixture of the embedding, the
// finished sums and the running one.                                                                   Kimi Team 2026, arXiv 2603.15031
//
//   sources = {v_0, finished sums, running sum p}      for k >= 1; the running sum is offered before it is closed
//   u = N(sum_j softmax_j(w_k . N_k(source_j)) source_j)
//   if k mod S = 0: p becomes a finished sum.   Then p = S_k(u), or p + S_k(u).
//   read-out: one more mixture.   Sublayer 0 reads N(v_0) with the model's eps; other norms have eps 1e-5, as in AttnRes.
//
//   sources (N, d)    w_k, gain of N_k (d)    S counts sublayers; the last group may be shorter
//   at initialisation this is   the uniform average of the sources (w = 0): Pre-LN up to eps, as in AttnRes.
//   reduces to   AttnRes when S = 1.
//   cost per token and sublayer   parameters 3 d; FLOPs 4 (k / S + 2) d; elements moved forward (k / S + 3) d for the
//   mixture, saved 2 d.
//   source: DepthBench block `attnres`, attnres_block_size = S.   The paper suggests about 8 groups; the released runs'
//   S is not known: it is an option.
//   dead at initialisation: the mixers' gains (they are multiplied by the zero queries).
#pragma once
#include "depthbench/residual/depth_mixers.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class BlockAttnRes final : public Residual<Device, R> {
 public:
  using typename Residual<Device, R>::Variable;
  using typename Residual<Device, R>::State;

  // block_size: S, in sublayers; 0: an eighth of them, rounded up.
  explicit BlockAttnRes(const DesignOptions& options = {}) : size_(options.integer("block_size", 0, 0, 1 << 20)) {
    options.expect_only("block_attn_res", {"block_size"});
  }

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) override {
    if (size_ == 0) size_ = (shape.sublayers + 7) / 8;
    gain_ = declare_branch_norms(p, shape);
    mixers_.declare(p, shape);
    norm_eps_ = shape.norm_eps;
  }

  // carry: the sources in order; before write(k) the last is the running sum, closed if k mod S = 0 (for k = 0 there is none)
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
  void write(State& carry, Variable y, int k) override {
    if (k % size_ == 0 || mixers_.newest(carry).id == 0) return run(carry, y, k);
    const Variable sum = add(mixers_.newest(carry).v, y);  // the running sum goes on: it replaces its predecessor
    mixers_.drop_newest(carry);
    run(carry, sum, k);
  }
  Variable close(State& carry) override { return mixers_.mixture(carry, mixers_.count()); }
  Variable state(State& carry, int block) override {
    if (block == mixers_.count() / 2 || 2 * block % size_ == 0) return read_out(carry, block);
    return mixers_.newest(carry).v;
  }
  double head_eps(const ResidualShape&) const override { return mixers_.eps; }

  Variable read_out(State& carry, int block) override {
    return block == 0 ? carry.values[0] : mixers_.mixture(carry, 2 * block);
  }
  void skip(State& carry, int block, FirstRun first) override {
    const auto newest = mixers_.newest(carry);
    const Variable same = reshape(newest.v, newest.v.shape());
    if (newest.id != 0) {  // the running sum passes on unchanged, and closes where the next block says
      mixers_.drop_newest(carry);
      run(carry, same, 2 * block + 1);
    } else if (first == FirstRun::embedding) {
      run(carry, same, 2 * block + 1);
    }
    const int next = 2 * block + 2;
    if (next % size_ == 0 || next == mixers_.count()) mixers_.bypass(carry, next);
  }
  void swap(Parameters<Device, R>& p, int i, int j) override { mixers_.swap(p, i, j); }
  std::optional<Join> join(State& carry, int k) override {
    return mixers_.join(carry, k, [this](int output) { return (output - 1) / size_ * size_ + 1; });
  }

 private:
  // Publishes the sum after sublayer k: read by mixer k + 1, and by all later ones if that closes it.
  void run(State& carry, Variable sum, int k) const {
    mixers_.publish(carry, sum, k + 1, k + 1, (k + 1) % size_ == 0 ? mixers_.count() : k + 1);
  }

  int size_;
  DepthMixers<Device, R> mixers_;
  std::vector<Parameter<R>*> gain_;  // one a sublayer, (d)
  double norm_eps_ = 0;
};

}  // namespace depthbench
