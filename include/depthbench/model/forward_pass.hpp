// A forward pass that can be halted, looked at, copied and led another way. Training runs it through; the analyses drive it.
//   auto pass = model.begin(tape, tokens, batch);
//   while (!pass.done()) pass.step();                       // a block at a time
//   auto h = pass.finish();                                 // the head's normed input (B T, d)
// A copy goes on from where it was made; both stay valid as long as the tape holds their values.
#pragma once
#include "depthbench/model/attention.hpp"
#include "depthbench/model/ffn.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

enum class Activations { keep, recompute };  // recompute: a block's inner values are made again in the backward pass

// The model around the residual design, and what a pass needs of it.
template <class Device, class R> struct Backbone {
  ModelConfig config;
  std::unique_ptr<Residual<Device, R>> residual;
  Parameter<R>*embedding = nullptr, *head_norm = nullptr, *head = nullptr;  // (V, d)  (d)  (V, d)
  std::vector<AttentionWeights<R>> attention;                               // one a block
  std::vector<FfnWeights<R>> ffn;
  RopeTable<R> rope;

  ResidualShape residual_shape() const { return {config.d_model, config.sublayers(), config.norm_eps, config.kv_width()}; }
  Var<Device, R> norm(Var<Device, R> r) const {  // before the head
    return rms_norm(r, r.tape->use(*head_norm), residual->head_eps(residual_shape()));
  }
};

template <class Device, class R> class ForwardPass {
 public:
  using Variable = Var<Device, R>;

  ForwardPass(const Backbone<Device, R>& model, Variable x, const AttentionShape& shape)  // x (B T, d), the embedding
      : model_(&model), shape_(shape) {
    const auto scope = by_design(*x.tape);
    carry_ = model.residual->open(x);
    u_ = model.residual->read(carry_, 0);
  }

  int sublayer() const { return k_; }  // the next one
  int block() const { return k_ / 2; }
  bool done() const { return k_ == model_->config.sublayers(); }

  Variable state() { return model_->residual->state(carry_, block()); }        // z_l
  Variable read_out() { return model_->residual->read_out(carry_, block()); }  // r_l, what the head would read      (N, d)
  Variable input() const { return u_; }                                        // of the next sublayer, after its norm  (N, d)
  std::optional<Join> join() { return model_->residual->join(carry_, k_); }

  // The output of the next sublayer; it still has to be written.
  Variable branch() {
    auto& residual = *model_->residual;
    if (k_ % 2 == 1) return ffn(u_, model_->ffn[block()]);
    const auto attended = attention(u_, model_->attention[block()], shape_, model_->rope, residual.depth_slots(carry_, k_));
    residual.leave_keys(carry_, attended.k, attended.v, k_);
    return attended.y;
  }
  void write(Variable y) {
    const auto scope = by_design(*y.tape);
    if (k_ + 1 < model_->config.sublayers()) u_ = model_->residual->advance(carry_, y, k_);
    else model_->residual->write(carry_, y, k_);
    ++k_;
  }
  // A block.
  void step(Activations activations = Activations::keep) {
    auto& tape = *u_.tape;
    if (activations == Activations::keep && tape.recording()) {
      write(branch());
      write(branch());
      return;
    }
    auto values = tape.recompute([before = *this] {  // values leave the block as one list, u last
      ForwardPass pass = before;
      pass.write(pass.branch());
      pass.write(pass.branch());
      auto list = pass.carry_.values;
      list.push_back(pass.u_);
      return list;
    });
    u_ = values.back();
    values.pop_back();
    carry_.values = std::move(values);
    k_ += 2;
  }
  // Leaves a block out, as the design understands it.
  void skip(FirstRun first = FirstRun::nothing) {
    model_->residual->skip(carry_, block(), first);
    k_ += 2;
    if (!done()) u_ = model_->residual->read(carry_, k_);
  }
  // Goes on from state z. False, and nothing is changed, where a state does not determine what the design carries.
  bool replace(Variable z) {
    if (!model_->residual->replace(carry_, z)) return false;
    if (!done()) u_ = model_->residual->read(carry_, k_);
    return true;
  }
  Variable finish() {  // (N, d)
    const Variable r = [this] {
      const auto scope = by_design(*u_.tape);
      return model_->residual->close(carry_);
    }();
    return model_->norm(r);
  }

 private:
  // Whatever a design does, matrix products too, counts as the design's in the profile.
  static auto by_design(Tape<Device, R>& tape) { return tape.device().profile().within(Part::residual); }

  const Backbone<Device, R>* model_;
  AttentionShape shape_;
  Carry<Device, R> carry_;
  Variable u_;
  int k_ = 0;
};

}  // namespace depthbench
