// A residual design: four verbs around every sublayer, and nothing else.
//
//   tokens -> embed -> open -> [ read -> attention | FFN -> write ] x K -> close -> head -> loss
//                          \________ the carry: one stream, n streams, or a list of sources ________/
//
// Sublayer k = 2i is the attention of block i, k = 2i + 1 its FFN; there are K = 2 L of them.
// A design is a run-time value. It declares its parameters (name, shape, initial value, decay), so that checkpoints,
// optimizer and accounting need no code of its own.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "depthbench/op/add.hpp"
#include "depthbench/op/causal_attention.hpp"
#include "depthbench/op/rms_norm.hpp"
#include "depthbench/residual/interventions.hpp"
#include "depthbench/residual/shape.hpp"

namespace depthbench {

// What flows from sublayer to sublayer. The values are tensors of N rows, their meaning is the design's; `shared` is
// bookkeeping that belongs to the whole pass.
template <class Device, class R> struct Carry {
  std::vector<Var<Device, R>> values;
  std::shared_ptr<void> shared;
};

// "blocks.3.attention" or "blocks.3.feed_forward"
inline std::string sublayer_name(int k) {
  return fmt::format("blocks.{}.{}", k / 2, k % 2 == 0 ? "attention" : "feed_forward");
}

template <class Device_, class R_> class Residual {
 public:
  using Device = Device_;
  using R = R_;
  using Variable = Var<Device, R>;
  using State = Carry<Device, R>;

  virtual ~Residual() = default;

  // Called once, first, before the model declares its weights; then declare.
  virtual void configure(const ResidualShape&) {}
  virtual void declare(Parameters<Device, R>& parameters, const ResidualShape& shape) = 0;

  virtual State open(Variable x) = 0;                         // x (N, d), the embedding
  virtual Variable read(State& carry, int k) = 0;             // the input of sublayer k                     (N, d)
  virtual void write(State& carry, Variable y, int k) = 0;    // its output y (N, d) goes back into the carry
  virtual Variable close(State& carry) = 0;                   // what the head reads, before the last norm   (N, d)

  // write of sublayer k and read of k + 1. A design overrides it where one pass over the carry does both.
  virtual Variable advance(State& carry, Variable y, int k) {
    write(carry, y, k);
    return read(carry, k + 1);
  }

  // The depth state z_l: what the carry holds before block l, for l = L after the last.
  virtual Variable state(State& carry, int block) = 0;

  // ---- asked by the analyses (analysis/); a design of one stream need not say anything
  // r_l: what the head would read if the model ended before block l, l = 0 .. L.
  virtual Variable read_out(State& carry, int) { return close(carry); }
  // Leaves a block out. Called after read(2 block) in place of the block's sublayers; the carry is then ready for
  // read(2 block + 2), or for close after the last block.
  virtual void skip(State&, int, FirstRun) {}
  // Makes z the depth state, as if the blocks so far had left it; false where a state does not determine the carry.
  virtual bool replace(State&, Variable) { return false; }
  // Exchanges what belongs to blocks i and j; a second call restores it, bit for bit.
  virtual void swap(Parameters<Device, R>& parameters, int i, int j) { exchange_blocks(parameters, i, j); }
  // With which weights outputs of earlier sublayers reach the input of sublayer k, and how its own output is taken up.
  // Called after read(k), for k = K before close.   None: the design has no such weights (a norm on the stream).
  virtual std::optional<Join> join(State&, int) { return std::nullopt; }

  // Designs that also keep keys and values over depth: what attention k attends to beside the past, and what it leaves
  // behind. k and v (N, kv width) are as projected, not rotated.
  virtual std::vector<DepthSlotVar<Device, R>> depth_slots(State&, int) { return {}; }
  virtual void leave_keys(State&, Variable, Variable, int) {}

  // Where the weights of sublayer k are in files: "blocks.3.attention".
  virtual std::string branch_name(int k) const { return sublayer_name(k); }

  // Factor on the initial standard deviation of a weight matrix.
  virtual double init_scale(Weight) const { return 1; }
  // eps of the norm before the head.
  virtual double head_eps(const ResidualShape& shape) const { return shape.norm_eps; }
};

// One gain (d) a sublayer: blocks.i.attention_norm.weight, blocks.i.feed_forward_norm.weight
template <class Device, class R>
std::vector<Parameter<R>*> declare_branch_norms(Parameters<Device, R>& p, const ResidualShape& shape) {
  std::vector<Parameter<R>*> gains;
  for (int k = 0; k < shape.sublayers; ++k)
    gains.push_back(&p.declare(sublayer_name(k) + "_norm.weight", {shape.d}, Init::constant(1), Decay::yes, Part::norm));
  return gains;
}

// The same of a norm after the branch, from sublayer `first` on:
// blocks.i.post_attention_norm.weight, blocks.i.post_feed_forward_norm.weight; null before `first`
template <class Device, class R>
std::vector<Parameter<R>*> declare_outer_norms(Parameters<Device, R>& p, const ResidualShape& shape, int first) {
  std::vector<Parameter<R>*> gains(std::size_t(first), nullptr);
  for (int k = first; k < shape.sublayers; ++k) {
    const std::string name = fmt::format("blocks.{}.post_{}_norm.weight", k / 2, k % 2 == 0 ? "attention" : "feed_forward");
    gains.push_back(&p.declare(name, {shape.d}, Init::constant(1), Decay::yes, Part::residual));
  }
  return gains;
}

// Options of a design by name, e.g. n_streams. Each is asked for once; names nobody asks for are errors.
class DesignOptions {
 public:
  DesignOptions() = default;
  DesignOptions(std::initializer_list<std::pair<const std::string, double>> list) : values_(list) {}
  void set(const std::string& name, double value) { values_[name] = value; }
  const std::map<std::string, double>& all() const { return values_; }

  int integer(const std::string& name, int fallback, int lowest, int highest) const {
    const auto it = values_.find(name);
    const double v = it == values_.end() ? fallback : it->second;
    if (v != int(v) || v < lowest || v > highest)
      fail<config_error>("residual design: {} is {}, needs a whole number from {} to {}", name, v, lowest, highest);
    return int(v);
  }
  void expect_only(std::string_view design, std::initializer_list<std::string_view> known) const {
    for (const auto& [name, value] : values_) {
      bool found = false;
      for (const auto k : known) found = found || k == name;
      if (!found) fail<config_error>("residual design {} has no option {}", design, name);
    }
  }

 private:
  std::map<std::string, double> values_;
};

}  // namespace depthbench
