#include "results.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace depthbench::app {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Point> points_of(const std::vector<Result>& rows) {
  std::vector<Point> points;
  for (const auto& r : rows) {
    if (r.summary.status != Status::finished) continue;
    const Summary& s = r.summary;
    auto it = std::find_if(points.begin(), points.end(), [&](const Point& p) {
      return p.design == s.design && p.n_layers == s.n_layers && p.d_model == s.d_model && p.lr == s.lr;
    });
    if (it == points.end())
      it = points.insert(points.end(),
                         {s.design, s.n_layers, s.d_model, 0, s.lr, 0, s.validation_loss, s.validation_loss});
    it->mean = (it->mean * it->runs + s.validation_loss) / (it->runs + 1);
    it->low = std::min(it->low, s.validation_loss);
    it->high = std::max(it->high, s.validation_loss);
    ++it->runs;
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.aspect_ratio() > b.aspect_ratio(); });
  return points;
}

struct Choice {
  double lr = 0, loss = 0;
  std::vector<double> rates;  // tried to the end at every shape
};
Choice choose(const std::string& design, const Results& results) {
  std::map<double, std::vector<double>> losses;  // of shapes, by rate
  for (const auto& p : results.points)
    if (p.design == design) losses[p.lr].push_back(p.mean);
  std::set<double> diverged;
  std::size_t shapes = 0;
  for (const auto& r : results.rows)
    if (r.summary.design == design && r.summary.status == Status::diverged) diverged.insert(r.summary.lr);
  for (const auto& [lr, list] : losses) shapes = std::max(shapes, list.size());
  Choice best;
  for (const bool strict : {true, false}) {
    for (const auto& [lr, list] : losses) {
      if (list.size() < shapes || (strict && diverged.contains(lr))) continue;
      double mean = 0;
      for (const double x : list) mean += x / double(list.size());
      best.rates.push_back(lr);
      if (best.rates.size() == 1 || mean < best.loss) {
        best.lr = lr;
        best.loss = mean;
      }
    }
    if (!best.rates.empty()) break;
  }
  return best;
}

std::string field(double x) { return std::isfinite(x) ? fmt::format("{}", x) : ""; }
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

}  // namespace

Results collect_results(const std::vector<GridRun>& grid, const std::filesystem::path& out) {
  return collect_results(grid, [&](const GridRun& run) { return out / "runs" / run.name; });
}

Results collect_results(const std::vector<GridRun>& grid, const std::function<std::filesystem::path(const GridRun&)>& folder) {
  Results results;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& run : grid) {
    Result r{&run, folder(run), {}, 0};
    if (const auto s = read_summary(r.folder / "summary.json")) r.summary = *s;
    if (r.summary.status == Status::unfinished)
      r.summary.train_loss = r.summary.validation_loss = r.summary.published_loss = nan;
    r.summary.design = run.config.design;
    r.summary.n_layers = run.config.model.n_layers;
    r.summary.d_model = run.config.model.d_model;
    r.summary.lr = run.config.train.lr;
    r.summary.seed = run.config.train.seed;
    r.summary.parameters = run.parameters;
    if (std::find(results.designs.begin(), results.designs.end(), run.config.design) == results.designs.end())
      results.designs.push_back(run.config.design);
    if (r.summary.status == Status::diverged)
      results.warnings.push_back(fmt::format("{} diverged at step {}", run.name, r.summary.diverged_at_step));
    results.rows.push_back(std::move(r));
  }
  results.points = points_of(results.rows);

  std::map<std::string, double> best;
  std::set<double> tried;
  for (const auto& run : grid) tried.insert(run.config.train.lr);
  for (const auto& design : results.designs) {
    const Choice choice = choose(design, results);
    best[design] = choice.lr;
    if (choice.lr == 0 || tried.size() < 2) continue;
    if (choice.lr == *tried.begin() || choice.lr == *tried.rbegin())
      results.warnings.push_back(fmt::format(
          "{}: the best learning rate {:g} lies on the {} edge of its grid; a {} one may be better", design,
          choice.lr, choice.lr == *tried.begin() ? "lower" : "upper",
          choice.lr == *tried.begin() ? "lower" : "higher"));
  }
  for (auto& r : results.rows) r.best_lr = best[r.summary.design];
  for (const auto& design : results.designs)
    for (const auto& p : results.points)
      if (p.design == design && p.lr == best[design]) results.best.push_back(p);

  const auto [least, most] = std::minmax_element(
      grid.begin(), grid.end(),
      [](const GridRun& a, const GridRun& b) { return a.parameters.total() < b.parameters.total(); });
  if (most->parameters.total() > 1.1 * double(least->parameters.total()))
    results.warnings.push_back(fmt::format("the parameter budgets differ: {} has {}, {} has {}", least->name,
                                           least->parameters.total(), most->name, most->parameters.total()));
  return results;
}

std::string results_csv(const Results& results) {
  std::string out =
      "design,n_layers,d_model,aspect_ratio,parameters,lr,seed,steps,tokens,train_loss,val_loss,best_lr,"
      "seconds,status\n";
  for (const auto& r : results.rows) {
    const Summary& s = r.summary;
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", field(s.design), s.n_layers, s.d_model,
                       double(s.d_model) / s.n_layers, s.parameters.total(), s.lr, s.seed, s.steps, s.tokens,
                       field(s.train_loss), field(s.validation_loss), r.best_lr > 0 ? field(r.best_lr) : "",
                       s.seconds, name_of(s.status));
  }
  return out;
}

std::string results_json(const Results& results) {
  Json runs = Json::array(), best = Json::array();
  for (const auto& r : results.rows) {
    const Summary& s = r.summary;
    runs.push_back({{"run", r.run->name},
                    {"design", s.design},
                    {"n_layers", s.n_layers},
                    {"d_model", s.d_model},
                    {"aspect_ratio", double(s.d_model) / s.n_layers},
                    {"parameters", s.parameters.total()},
                    {"lr", s.lr},
                    {"seed", s.seed},
                    {"steps", s.steps},
                    {"tokens", s.tokens},
                    {"train_loss", s.train_loss},
                    {"val_loss", s.validation_loss},
                    {"published_loss", s.published_loss},
                    {"best_lr", r.best_lr > 0 ? Json(r.best_lr) : Json()},
                    {"seconds", s.seconds},
                    {"tokens_per_s", s.tokens_per_s},
                    {"peak_memory_bytes", s.peak_memory},
                    {"status", name_of(s.status)}});
  }
  for (const auto& p : results.best)
    best.push_back({{"design", p.design},
                    {"n_layers", p.n_layers},
                    {"d_model", p.d_model},
                    {"aspect_ratio", p.aspect_ratio()},
                    {"lr", p.lr},
                    {"seeds", p.runs},
                    {"val_loss_mean", p.mean},
                    {"val_loss_low", p.low},
                    {"val_loss_high", p.high}});
  return Json{{"runs", runs}, {"best", best}, {"warnings", results.warnings}}.dump(2) + "\n";
}

}  // namespace depthbench::app
