// The mixers of the two AttnRes designs: one for every sublayer k >= 1 and one for the read-out, k = K.
//   query blocks.i.attn_res_proj.weight, blocks.i.mlp_res_proj.weight, res_proj.weight (1, d), zeros
//   gain of the keys' norm, ..._res_norm.weight (d), ones
#pragma once
#include "depthbench/op/depth_softmax.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class DepthMixers {
 public:
  using Variable = Var<Device, R>;
  using Bank = DepthBank<Device, R>;
  using State = Carry<Device, R>;
  static constexpr double eps = 1e-5;  // of mixers and of the norms that follow them: OLMo-core's default, not the model's

  void declare(Parameters<Device, R>& p, const ResidualShape& shape) {
    for (int k = 1; k <= shape.sublayers; ++k) {
      const std::string at = k == shape.sublayers ? "res" : fmt::format("blocks.{}.{}_res", k / 2, k % 2 == 0 ? "attn" : "mlp");
      query_.push_back(&p.declare(at + "_proj.weight", {1, shape.d}, Init::constant(0), Decay::yes, Part::residual));
      gain_.push_back(&p.declare(at + "_norm.weight", {shape.d}, Init::constant(1), Decay::yes, Part::residual));
      query_.back()->keep_fp32 = gain_.back()->keep_fp32 = true;
    }
  }
  int count() const { return int(query_.size()); }

  // A carry without sources. Three values a source follow: v (N, d), 1 / rms (N), its logits for later mixers (mixers, N).
  State open(Tape<Device, R>& tape) const {
    std::vector<Variable> w, g;
    for (auto* q : query_) w.push_back(tape.use(*q));
    for (auto* q : gain_) g.push_back(tape.use(*q));
    return {{}, std::make_shared<Bank>(mixer_keys(w, g), eps)};
  }
  // Adds v as the source `id`, to be read by the mixers first .. last (1 .. K).
  void publish(State& carry, Variable v, int id, int first, int last) const {
    const auto s = bank(carry).publish(v, id, first - 1, last - 1);
    carry.values.insert(carry.values.end(), {s.v, s.r, s.logit});
  }
  // What mixer k makes of the sources: `described(j)` is {id, first, last} of source j, as it was published.
  struct Published { int id, first, last; };
  template <class Describe> Variable mixture(State& carry, int k, const Describe& described) const {
    std::vector<typename Bank::Source> sources;
    for (int j = 0; j < int(carry.values.size()) / 3; ++j) {
      const Published d = described(j);
      sources.push_back({carry.values[3 * j], carry.values[3 * j + 1], carry.values[3 * j + 2], d.id, d.first - 1, d.last - 1});
    }
    return bank(carry).read(sources, k - 1);
  }

 private:
  static const Bank& bank(const State& carry) { return *static_cast<const Bank*>(carry.shared.get()); }

  std::vector<Parameter<R>*> query_, gain_;  // of mixers 1 .. K
};

}  // namespace depthbench
