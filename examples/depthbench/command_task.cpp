// depthbench task: a grid of models on k-hop induction, where it is known how much depth is needed.
//   OUT/NAME.json   each run, complete or not there      OUT/results.csv   all of them      the same command goes on
//   OUT/hops_LxD.svg   accuracy against hops, a picture a shape      OUT/depth.svg   mean accuracy against depth
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "depthbench/io/atomic_file.hpp"
#include "progress.hpp"
#include "signals.hpp"
#include "svg.hpp"
#include "sweep_grid.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json key_of(const GridRun& run, const TaskArgs& args) {
  const RunConfig& c = run.config;
  return {{"design", c.design}, {"options", c.options}, {"n_layers", c.model.n_layers}, {"d_model", c.model.d_model}, {"n_heads", c.model.n_heads},
          {"ffn_hidden", c.model.ffn_hidden}, {"parameters", run.parameters.total()}, {"lr", c.train.lr}, {"seed", c.train.seed},
          {"steps", c.train.steps}, {"batch_tokens", c.train.batch_tokens}, {"precision", c.precision}, {"letters", args.task.letters},
          {"max_hops", args.task.max_hops}, {"seq_len", args.task.seq}, {"tests", args.tests}};
}

Json read_done(const fs::path& file, const Json& key) {  // null: not done, or done otherwise
  std::ifstream in(file);
  const Json j = in ? Json::parse(in, nullptr, false) : Json();
  if (!j.is_object() || !j.contains("accuracy")) return nullptr;
  for (const auto& [name, value] : key.items()) if (!j.contains(name) || j[name] != value) return nullptr;
  return j;
}

std::string row_of(const Json& j) {
  std::string row = fmt::format("{},{},{},{},{},{},{},{}", j["design"].get<std::string>(), j["n_layers"].get<int>(), j["d_model"].get<int>(),
                                j["n_heads"].get<int>(), j["parameters"].get<std::int64_t>(), j["lr"].get<double>(), j["seed"].get<std::uint64_t>(),
                                j["train_loss"].is_number() ? fmt::format("{}", j["train_loss"].get<double>()) : "");
  for (const auto& a : j["accuracy"]) row += fmt::format(",{:.4f}", a.get<double>());
  return row + "\n";
}

// What the runs of a design at a shape came to: one entry a seed (or rate).
struct Accuracies {
  std::vector<std::vector<double>> runs;  // by hops
  ChartPoint point(double x, const std::string& title, int hops) const {  // mean and range; hops < 0: the mean over all of them
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (const auto& r : runs) {
      const double y = hops >= 0 ? r[std::size_t(hops)] : std::accumulate(r.begin(), r.end(), 0.0) / double(r.size());
      sum += y;
      low = std::min(low, y);
      high = std::max(high, y);
    }
    const double mean = sum / double(runs.size());
    return {x, mean, low, high, fmt::format("{}: {:.3f}", title, mean)};
  }
};

void write_pictures(const std::vector<Json>& done, int max_hops, double chance, const fs::path& out) {
  std::vector<std::string> designs;
  std::map<std::pair<int, int>, std::map<std::string, Accuracies>> shapes;  // by L, d
  for (const Json& j : done) {
    const std::string design = j["design"];
    if (std::find(designs.begin(), designs.end(), design) == designs.end()) designs.push_back(design);
    const auto accuracy = j["accuracy"].get<std::vector<double>>();
    if (int(accuracy.size()) == max_hops + 1) shapes[{j["n_layers"], j["d_model"]}][design].runs.push_back(accuracy);
  }
  const auto write = [&](const std::string& name, const Chart& c) {
    write_file_atomically(out / name, [&](AtomicFile& f) { f.write(chart_svg_file(c)); });
  };
  const auto chart = [&](std::string title) {
    Chart c;
    c.title = std::move(title);
    c.y = {"accuracy", 0, 1.02, false, {0, 0.25, 0.5, 0.75, 1}};
    c.rule = chance;
    c.rule_label = "chance";
    return c;
  };
  Chart depth = chart("Mean accuracy over all numbers of hops, against depth");
  std::vector<double> layers;
  for (const auto& [shape, _] : shapes) layers.push_back(shape.first);
  if (layers.empty()) return;
  depth.x = {"blocks L, at one budget of parameters", layers.front() / 1.2, layers.back() * 1.2, true, layers};
  for (std::size_t i = 0; i < designs.size(); ++i) depth.series.push_back({designs[i], int(i) % chart_colors, {}, true});
  for (const auto& [shape, by_design] : shapes) {
    Chart c = chart(fmt::format("Accuracy against hops, L = {}, d = {}", shape.first, shape.second));
    c.x = {"hops", 0, double(std::max(1, max_hops)), false, {}};
    for (int k = 0; k <= max_hops; ++k) c.x.ticks.push_back(k);
    for (std::size_t i = 0; i < designs.size(); ++i) {
      const auto found = by_design.find(designs[i]);
      if (found == by_design.end()) continue;
      ChartSeries s{designs[i], int(i) % chart_colors, {}, true};
      for (int k = 0; k <= max_hops; ++k) s.points.push_back(found->second.point(k, fmt::format("{}, {} hops", designs[i], k), k));
      c.series.push_back(std::move(s));
      depth.series[i].points.push_back(found->second.point(shape.first, fmt::format("{}, L = {}", designs[i], shape.first), -1));
    }
    write(fmt::format("hops_{}x{}.svg", shape.first, shape.second), c);
  }
  write("depth.svg", depth);
}

}  // namespace

int task_command(const Engine& engine, const TaskArgs& args) {
  RunConfig base;
  base.train.steps = 2000;
  base.train.lr = 2e-3;
  base.model.n_heads = 4;  // heads buy depth in this task: one number for all shapes
  base = read_config(std::move(base), args.config, args.settings, Command::sweep);
  if (base.train.steps < 1) fail<config_error>("task: train.steps is {}, needs 1 or more", base.train.steps);
  base.train.seq_len = args.task.seq;
  const std::int64_t rows = std::max<std::int64_t>(1, base.train.batch_tokens / args.task.seq);
  base.train.batch_tokens = rows * args.task.seq;
  const auto grid = grid_of(engine, base, args.task.vocab_size());
  const fs::path out = args.out;
  std::error_code code;
  fs::create_directories(out, code);
  if (!fs::is_directory(out)) fail<file_error>("task: the folder {} cannot be made: {}", out.string(), code.message());

  const StopRequests stop;
  std::string csv = "design,n_layers,d_model,n_heads,parameters,lr,seed,train_loss";
  for (int k = 0; k <= args.task.max_hops; ++k) csv += fmt::format(",accuracy_{}_hops", k);
  csv += "\n";
  fmt::print("k-hop induction: {} letters, {} tokens, 0 to {} hops, {} samples a step, {} steps; {} runs\n{:<28} {:>10}  accuracy by hops\n",
             args.task.letters, args.task.seq, args.task.max_hops, rows, base.train.steps, grid.size(), "run", "parameters");
  std::vector<Json> all;
  for (const auto& run : grid) {
    const Json key = key_of(run, args);
    const fs::path file = out / (run.name + ".json");
    Json j = read_done(file, key);
    if (j.is_null()) {
      Line line(run.name);
      const TaskScore score = engine.solve(run.config, args.task, args.tests, [&](std::int64_t step, std::int64_t of, double loss) {
        stop.throw_if_any();
        line.show(step, of, fmt::format("  loss {:.3f}", loss));
      });
      line.clear();
      j = key;
      j["accuracy"] = score.accuracy;
      j["train_loss"] = score.diverged ? Json() : Json(score.train_loss);
      j["diverged"] = score.diverged;
      j["seconds"] = score.seconds;
      write_file_atomically(file, [&](AtomicFile& f) { f.write(j.dump(2) + "\n"); });
    }
    csv += row_of(j);
    all.push_back(j);
    std::string cells;
    for (const auto& a : j["accuracy"]) cells += fmt::format(" {:.2f}", a.get<double>());
    fmt::print("{:<28} {:>10} {}\n", run.name, run.parameters.total(), j["diverged"].get<bool>() ? " diverged" : cells);
    std::fflush(stdout);
  }
  write_file_atomically(out / "results.csv", [&](AtomicFile& f) { f.write(csv); });
  write_pictures(all, args.task.max_hops, 1.0 / args.task.letters, out);
  fmt::print("table: {}\npictures: {}\n", (out / "results.csv").string(), (out / "depth.svg").string());
  return 0;
}

}  // namespace depthbench::app
