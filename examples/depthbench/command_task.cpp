// depthbench task: a grid of models on k-hop induction, where it is known how much depth is needed.
//   OUT/NAME.json   each run, complete or not there      OUT/results.csv   all of them      the same command goes on
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "depthbench/io/atomic_file.hpp"
#include "progress.hpp"
#include "signals.hpp"
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
    std::string cells;
    for (const auto& a : j["accuracy"]) cells += fmt::format(" {:.2f}", a.get<double>());
    fmt::print("{:<28} {:>10} {}\n", run.name, run.parameters.total(), j["diverged"].get<bool>() ? " diverged" : cells);
    std::fflush(stdout);
  }
  write_file_atomically(out / "results.csv", [&](AtomicFile& f) { f.write(csv); });
  fmt::print("table: {}\n", (out / "results.csv").string());
  return 0;
}

}  // namespace depthbench::app
