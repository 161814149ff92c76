// The mixers of the two AttnRes designs: one for every sublayer k >= 1 and one for the read-out, k = K.
//   query blocks.i.attn_res_proj.weight, blocks.i.mlp_res_proj.weight, res_proj.weight (1, d), zeros
//   gain of the keys' norm, ..._res_norm.weight (d), ones
#pragma once
#include "depthbench/op/depth_softmax.hpp"
#include "depthbench/op/reshape.hpp"
#include "depthbench/residual/design.hpp"

namespace depthbench {

template <class Device, class R> class DepthMixers {
 public:
  using Variable = Var<Device, R>;
  using Bank = DepthBank<Device, R>;
  using State = Carry<Device, R>;
  using Source = typename Bank::Source;
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
  // Adds v as the source `id` (unique in a pass), to be read by the mixers first .. last (1 .. K).
  void publish(State& carry, Variable v, int id, int first, int last) const {
    const auto s = bank(carry).publish(v, id, first - 1, last - 1);
    carry.values.insert(carry.values.end(), {s.v, s.r, s.logit});
  }
  int sources(const State& carry) const { return int(carry.values.size()) / 3; }
  const Source& source(const State& carry, int j) const { return bank(carry).source(carry.values[3 * std::size_t(j)]); }
  const Source& newest(const State& carry) const { return source(carry, sources(carry) - 1); }
  void drop_newest(State& carry) const { carry.values.resize(carry.values.size() - 3); }

  // What mixer k makes of the sources.
  Variable mixture(const State& carry, int k) const {
    if (bank(carry).bypassed(k - 1)) return newest(carry).v;
    return bank(carry).read(list(carry), k - 1);
  }
  // Its weights, source by source (N).
  std::vector<std::vector<double>> weights(const State& carry, int k) const {
    const auto sources = list(carry);
    const std::size_t n = std::size_t(sources[0].v.rows());
    if (bank(carry).bypassed(k - 1)) {
      std::vector<std::vector<double>> w(sources.size(), std::vector<double>(n));
      w.back().assign(n, 1.0);
      return w;
    }
    std::vector<R> p(sources.size() * n);
    auto& tape = *sources[0].v.tape;
    tape.no_grad([&] {
      bank(carry).read(sources, k - 1, p.data());
      return std::vector<Variable>{};
    });
    std::vector<std::vector<double>> w;
    for (std::size_t j = 0; j < sources.size(); ++j) w.emplace_back(p.begin() + std::ptrdiff_t(j * n), p.begin() + std::ptrdiff_t((j + 1) * n));
    return w;
  }
  // first_of(i): the first output in the source that ends with output i.
  template <class First> std::optional<Join> join(const State& carry, int k, const First& first_of) const {
    if (k == 0) return Join{0, {}, {}, {}, {{0, 0, std::vector<double>(std::size_t(carry.values[0].rows()), 1.0)}}};
    Join j;
    auto w = weights(carry, k);
    for (int s = 0; s < sources(carry); ++s) {
      const int last = source(carry, s).id;
      j.sources.push_back({last == 0 ? 0 : first_of(last), last, std::move(w[std::size_t(s)])});
    }
    return j;
  }
  // From here on mixer k hands on the newest source: the block before it was left out.
  void bypass(State& carry, int k) const { carry.shared = std::make_shared<Bank>(bank(carry).bypassing(k - 1)); }

  // Exchanges blocks i and j: all of theirs but the mixers before their attention; instead the mixers that read each block's
  // output first, that of the next block's attention or of the read-out.
  void swap(Parameters<Device, R>& p, int i, int j) const {
    exchange_blocks(p, i, j, "attn_res_");
    if (i == j) return;
    for (const auto& list : {query_, gain_}) exchange(p, *list[2 * std::size_t(i) + 1], *list[2 * std::size_t(j) + 1]);
  }

 private:
  static const Bank& bank(const State& carry) { return *static_cast<const Bank*>(carry.shared.get()); }
  std::vector<Source> list(const State& carry) const {
    std::vector<Source> all;
    for (int j = 0; j < sources(carry); ++j) all.push_back(source(carry, j));
    return all;
  }

  std::vector<Parameter<R>*> query_, gain_;  // of mixers 1 .. K
};

}  // namespace depthbench
