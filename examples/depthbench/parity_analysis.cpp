// depthbench parity --analysis: the analyses against a case's analysis.json.
#include "depthbench/analysis/angular_distance.hpp"
#include "depthbench/analysis/causal_score.hpp"
#include "depthbench/analysis/composed_map.hpp"
#include "depthbench/analysis/logit_lens.hpp"
#include "depthbench/analysis/path_weights.hpp"
#include "depthbench/analysis/permutation_score.hpp"
#include "depthbench/analysis/pruning.hpp"
#include "golden_case.hpp"

namespace depthbench::app {
namespace {

constexpr double limit = 1e-9;  // relative to the largest entry of each table

// Numbers of nested lists, row by row; null is NaN: "not defined".
void flatten(const Json& j, std::vector<double>& out) {
  if (j.is_array()) for (const auto& e : j) flatten(e, out);
  else out.push_back(j.is_null() ? std::numeric_limits<double>::quiet_NaN() : j.get<double>());
}

// Both must leave the same places undefined.
double table_error(std::vector<double> has, const Json& needs) {
  std::vector<double> want;
  flatten(needs, want);
  if (has.size() != want.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) != std::isnan(has[i])) return std::numeric_limits<double>::infinity();
    if (std::isnan(want[i])) has[i] = want[i] = 0;
  }
  return relative_error(has, want);
}

class Comparison {
 public:
  explicit Comparison(Json& line) : line_(line) {}
  void add(const char* name, const std::vector<double>& has, const Json& needs) {
    const double e = table_error(has, needs), before = line_.value(name, 0.0);
    line_[name] = std::isinf(e) || std::isnan(e) ? 1e300 : std::max(before, e);  // JSON has no infinity
    ok_ = ok_ && e <= limit;
  }
  bool ok() const { return ok_; }

 private:
  Json& line_;
  bool ok_ = true;
};

std::vector<double> upper(const Permutation& p, bool score) {
  std::vector<double> v;
  for (int i = 0; i < p.layers; ++i) for (int j = 0; j < p.layers; ++j)
    v.push_back(i >= j ? std::numeric_limits<double>::quiet_NaN() : score ? p.score(i, j) : p.loss(i, j));
  return v;
}

std::string name_of_mixer(int k, int sublayers) {
  return k == sublayers ? "res" : fmt::format("blocks.{}.{}_res", k / 2, k % 2 == 0 ? "attn" : "mlp");
}

void compare_mixing(Comparison& c, const std::vector<MixerWeights>& mixing, int sublayers, const Json& needs) {
  if (mixing.size() != needs.size()) fail<format_error>("parity: {} mixers, the case has {}", mixing.size(), needs.size());
  for (std::size_t m = 0; m < mixing.size(); ++m) {
    const auto& mix = mixing[m];
    if (name_of_mixer(mix.sublayer, sublayers) != needs[m].at("mixer").get<std::string>())
      fail<format_error>("parity: mixer {} is {}, the case has {}", m, name_of_mixer(mix.sublayer, sublayers), needs[m].at("mixer").get<std::string>());
    std::vector<double> has;
    Json sources = Json::array();
    for (const auto& s : mix.sources) {
      has.push_back(s.weight.mean());
      Json names = Json::array();
      for (int i = s.first; i <= s.last; ++i) names.push_back(i == 0 ? std::string("emb") : fmt::format("f{}", i - 1));
      sources.push_back(names);
    }
    if (sources != needs[m].at("sources")) fail<format_error>("parity: mixer {} has the sources {}, the case {}", m, sources.dump(), needs[m].at("sources").dump());
    c.add("depth_mixing", has, needs[m].at("weights"));
  }
}

}  // namespace

bool run_analysis_case(const std::filesystem::path& folder, Cpu& cpu, Json& line) {
  GoldenCase golden(folder, cpu);
  const Json needs = read_json(folder / "analysis.json");
  line["design"] = golden.json.at("design");
  auto& model = *golden.model;
  Tape<Cpu, double> tape(cpu);
  AnalysisOptions o;
  const int seq = int(golden.tokens.size()) / golden.batch;
  const Sample shifted = next_token_sample(golden.tokens, seq), labelled{seq, golden.tokens, golden.targets};
  Comparison c(line);

  c.add("angular_distance", angular_distance(model, tape, shifted, o).means(), needs.at("angular_distance"));
  c.add("causal_score", causal_score(model, tape, shifted, o).means(), needs.at("causal_score"));
  for (const auto& [name, sample] : {std::pair{"shifted", &shifted}, std::pair{"targets", &labelled}}) {
    const auto pruned = pruning(model, tape, *sample, o);
    c.add("base_loss", {pruned.base.mean()}, needs.at("base_loss").at(name));
    c.add("pruning_delta", pruned.delta().means(), needs.at("pruning_delta").at(name));
    const auto permuted = permutation_score(model, tape, *sample, o);
    c.add("permutation_score", upper(permuted, true), needs.at("permutation_score").at(name));
    if (sample == &shifted) c.add("swap_loss", upper(permuted, false), needs.at("swap_loss_shifted"));
    const auto lens = logit_lens(model, tape, *sample, o);
    c.add("early_exit_ce", lens.early_exit.means(), needs.at("logit_lens").at(name).at("early_exit_ce"));
    c.add("kl_final", lens.kl.means(), needs.at("logit_lens").at(name).at("kl_final"));
    c.add("top5_overlap", lens.overlap.means(), needs.at("logit_lens").at(name).at("top5_overlap"));
  }
  const auto paths = path_weights(model, tape, shifted, o);
  if (paths.has_value() == needs.at("residual_path_weights").is_null())
    fail<format_error>("parity: path weights are {}, in the case they are {}", paths ? "defined" : "not defined", paths ? "not" : "defined");
  if (paths) {
    c.add("residual_path_weights", paths->weights.means(), needs.at("residual_path_weights"));
    if (needs.contains("depth_mixing")) compare_mixing(c, paths->mixing, model.config().sublayers(), needs.at("depth_mixing"));
  }
  if (needs.contains("composed_map")) {
    const auto map = composed_map(model, tape, shifted, o);
    if (!map) fail<format_error>("parity: there is no composed map, the case has one");
    const Json& want = needs.at("composed_map");
    c.add("effective_rank", {map->rank_after.means().back()}, want.at("effective_rank"));
    c.add("effective_rank", map->rank_after.means(), want.at("effective_rank_after_sublayer"));
    c.add("effective_rank", map->single_rank.means(), want.at("single_map_effective_rank"));
    c.add("composed_map", map->product.means(), want.at("mean_product"));
    c.add("composed_map", map->spectrum.means(), want.at("mean_singular_values"));
  }
  if (needs.contains("skip0_embedding_runs")) {
    o.first_run = FirstRun::embedding;
    const Json& want = needs.at("skip0_embedding_runs");
    const int L = model.config().n_layers;
    auto row = causal_score(model, tape, shifted, o).means();
    row.resize(std::size_t(L));
    c.add("skip0_embedding_runs", row, want.at("causal_row_0"));
    for (const auto& [name, sample] : {std::pair{"shifted", &shifted}, std::pair{"targets", &labelled}})
      c.add("skip0_embedding_runs", {pruning(model, tape, *sample, o).delta().means()[0]}, want.at("pruning_delta_0").at(name));
  }
  return c.ok();
}

}  // namespace depthbench::app
