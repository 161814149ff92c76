#include "analyses.hpp"

#include "depthbench/analysis/angular_distance.hpp"
#include "depthbench/analysis/causal_score.hpp"
#include "depthbench/analysis/composed_map.hpp"
#include "depthbench/analysis/jacobian.hpp"
#include "depthbench/analysis/logit_lens.hpp"
#include "depthbench/analysis/path_weights.hpp"
#include "depthbench/analysis/permutation_score.hpp"
#include "depthbench/analysis/pruning.hpp"
#include "depthbench/analysis/strong_fraction.hpp"
#if DEPTHBENCH_HAS_LAPACK
#include "depthbench/analysis/token_collapse.hpp"
#include "depthbench/analysis/usefulness.hpp"
#endif
#include "config.hpp"

namespace depthbench::app {
namespace {

using Model = Transformer<Cpu, float>;
using Tape32 = Tape<Cpu, float>;
using Run = Finding (*)(Model&, Tape32&, const Sample&, const AnalysisOptions&);

FoundTable table(const char* name, const char* rows, const char* cols, const Estimates& e) {
  return {name, rows, cols, e.rows(), e.cols(), e.means(), e.half_widths()};
}

Finding angular(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  return {"", {table("distance", "state i", "state j", angular_distance(m, t, s, o))}, {}};
}

void add_strong(Finding& f, const std::vector<double>& score, int L, double threshold) {
  f.numbers.emplace_back("threshold", threshold);
  f.numbers.emplace_back("strong_fraction_late_pairs", strong_fraction(score, L, threshold).fraction());
  f.numbers.emplace_back("strong_fraction_one_index_late", strong_fraction(score, L, threshold, Late::either).fraction());
}

Finding causal(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto c = causal_score(m, t, s, o);
  Finding f{"", {table("score", "block left out", "block affected", c)}, {}};
  add_strong(f, c.means(), m.config().n_layers, strong_causal);
  return f;
}

Finding permutation(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto p = permutation_score(m, t, s, o);
  FoundTable score{"score", "block i", "block j", p.layers, p.layers, {}, {}};
  for (int i = 0; i < p.layers; ++i) for (int j = 0; j < p.layers; ++j) {
    score.values.push_back(i < j ? p.score(i, j) : NAN);
    score.half_widths.push_back(i < j ? p.half_width(i, j) : NAN);
  }
  Finding f{"", {score}, {{"base_loss", p.base.mean()}}};
  add_strong(f, score.values, p.layers, strong_permutation);
  return f;
}

Finding lens(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto l = logit_lens(m, t, s, o);
  return {"", {table("early_exit_ce", "", "state", l.early_exit), table("kl_final", "", "state", l.kl), table("top5_overlap", "", "state", l.overlap)}, {}};
}

Finding prune(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto p = pruning(m, t, s, o);
  return {"", {table("delta", "", "block left out", p.delta())}, {{"base_loss", p.base.mean()}}};
}

Finding paths(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto p = path_weights(m, t, s, o);
  if (!p) return {"a norm on the stream rescales what earlier sublayers wrote", {}, {}};
  Finding f{"", {table("weight", "output of (0 the embedding, i + 1 sublayer i)", "input of sublayer (last: the read-out)", p->weights)}, {}};
  if (!p->mixing.empty()) {  // source by source, one row a mixer
    int most = 0;
    for (const auto& mix : p->mixing) most = std::max(most, int(mix.sources.size()));
    FoundTable mixing{"mixing", "mixer before sublayer 1 ..", "source", int(p->mixing.size()), most, {}, {}};
    for (const auto& mix : p->mixing) for (int j = 0; j < most; ++j) {
      const bool there = j < int(mix.sources.size());
      mixing.values.push_back(there ? mix.sources[std::size_t(j)].weight.mean() : NAN);
      mixing.half_widths.push_back(there ? mix.sources[std::size_t(j)].weight.half_width() : NAN);
    }
    f.tables.push_back(std::move(mixing));
  }
  return f;
}

Finding composed(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto c = composed_map(m, t, s, o);
  if (!c) return {"it has no streams", {}, {}};
  return {"",
          {table("rank_after_sublayer", "", "sublayer", c->rank_after), table("rank_of_single_map", "", "sublayer", c->single_rank),
           table("product", "to stream", "from stream", c->product), table("singular_values", "", "of the whole product, descending", c->spectrum)},
          {{"effective_rank", c->rank_after.means().back()}, {"direction_overlap", c->overlap.mean()}}};
}

Finding jacobian(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto j = jacobian_deviation(m, t, s, o);
  if (!j) return {"its blocks do not lead from one stream to one stream", {}, {}};
  return {"", {{"deviation", "", "block", 1, int(j->size()), *j, {}}}, {}};
}

#if DEPTHBENCH_HAS_LAPACK
Finding collapse(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto c = token_collapse(m, t, s, o);
  return {"", {table("stable_rank", "", "state", c.stable_rank), table("entropy_rank", "", "state", c.entropy_rank), table("sparsity", "", "state", c.sparsity)}, {}};
}

Finding useful(Model& m, Tape32& t, const Sample& s, const AnalysisOptions& o) {
  const auto u = usefulness(m, t, s, o);
  if (!u) return {"its depth state does not determine what later blocks read", {}, {}};
  FoundTable ratio{"loss_ratio", "", "block replaced", 1, int(u->replaced.size()), {}, {}};
  for (int l = 0; l < ratio.cols; ++l) ratio.values.push_back(u->ratio(l));
  return {"", {ratio}, {{"base_loss", u->base.mean()}, {"useful_share", u->useful_share()}}};
}
#else
constexpr Run collapse = nullptr, useful = nullptr;
#endif

struct Entry {
  AnalysisKind kind;
  Run run;
};
const std::vector<Entry>& entries() {
  static const std::vector<Entry> list{
      {{"angular", 128, 512, "angle between depth states / pi, mean over tokens"}, angular},
      {{"causal", 16, 256, "relative change of a block's update when an earlier block is left out"}, causal},
      {{"permutation", 12, 256, "relative change of the loss when two blocks are exchanged"}, permutation},
      {{"lens", 32, 512, "what the head makes of each depth state: cross-entropy and KL in nats, overlap of the top five"}, lens},
      {{"pruning", 16, 256, "loss without a block - loss, nats a label"}, prune},
      {{"paths", 16, 256, "weight of each sublayer's output in the inputs of later ones"}, paths},
      {{"composed", 16, 256, "products of residual maps: effective rank and spectrum"}, composed},
      {{"collapse", 32, 512, "ranks of the tokens of a window at each depth", true}, collapse},
      {{"usefulness", 16, 256, "loss with a block replaced by its best affine map / loss", true}, useful},
      {{"jacobian", 4, 128, "|J - I| / sqrt(d) of each block"}, jacobian}};
  return list;
}

}  // namespace

const std::vector<AnalysisKind>& analysis_kinds() {
  static const std::vector<AnalysisKind> list = [] {
    std::vector<AnalysisKind> v;
    for (const auto& e : entries()) v.push_back(e.kind);
    return v;
  }();
  return list;
}

const AnalysisKind& analysis_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& kind : analysis_kinds()) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  fail<config_error>("there is no analysis {}; the nearest is {}", name, nearest(name, names));
}

Finding run_analysis(const std::string& name, Model& model, Tape32& tape, const Sample& sample, const AnalysisOptions& options) {
  analysis_kind(name);
  for (const auto& e : entries()) {
    if (name != e.kind.name) continue;
    if (!e.run) return {"this program was built without LAPACK (libopenblas)", {}, {}};
    return e.run(model, tape, sample, options);
  }
  return {};
}

}  // namespace depthbench::app
