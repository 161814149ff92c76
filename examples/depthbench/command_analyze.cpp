// depthbench analyze: effective depth of a trained model, into the run's folder.
//   OUT/NAME.json       what was found, with intervals and how it was sampled     (complete or not there: the mark of being done)
//   OUT/NAME.TABLE.npy  each table, float64, NaN where a number is not defined
//   OUT/NAME.csv        the same in rows: table,row,col,value,half_width
#include <fstream>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "depthbench/io/npy.hpp"
#include "progress.hpp"
#include "saved_run.hpp"
#include "signals.hpp"

namespace depthbench::app {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

Json numbers(const std::vector<double>& v) {  // NaN becomes null
  Json j = Json::array();
  for (const double x : v) j.push_back(std::isfinite(x) ? Json(x) : Json());
  return j;
}

std::string csv_of(const Finding& f) {
  std::string out = "table,row,col,value,half_width\n";
  for (const auto& t : f.tables) for (int i = 0; i < t.rows; ++i) for (int j = 0; j < t.cols; ++j) {
    const std::size_t at = std::size_t(i * t.cols + j);
    if (std::isnan(t.values[at])) continue;
    const bool estimated = !t.half_widths.empty() && std::isfinite(t.half_widths[at]);
    out += fmt::format("{},{},{},{},{}\n", t.name, i, j, t.values[at], estimated ? fmt::format("{}", t.half_widths[at]) : "");
  }
  return out;
}

void write_finding(const fs::path& out, const std::string& name, const Finding& f, Json j) {
  if (!f.not_defined.empty()) j["not_defined"] = f.not_defined;
  for (const auto& [key, value] : f.numbers) j["numbers"][key] = std::isfinite(value) ? Json(value) : Json();
  for (const auto& t : f.tables) {
    write_npy<double>(out / fmt::format("{}.{}.npy", name, t.name), {t.rows, t.cols}, t.values);
    j["tables"][t.name] = {{"rows", t.rows}, {"cols", t.cols}, {"rows_are", t.rows_are}, {"cols_are", t.cols_are},
                           {"values", numbers(t.values)}, {"half_widths", numbers(t.half_widths)}};
  }
  write_file_atomically(out / (name + ".csv"), [&](AtomicFile& file) { file.write(csv_of(f)); });
  write_file_atomically(out / (name + ".json"), [&](AtomicFile& file) { file.write(j.dump() + "\n"); });
}

// True if the file holds this analysis of this checkpoint, sampled in this way.
bool is_done(const fs::path& file, const Json& key) {
  std::ifstream in(file);
  const Json j = in ? Json::parse(in, nullptr, false) : Json();
  if (!j.is_object()) return false;
  for (const auto& [name, value] : key.items()) if (!j.contains(name) || j[name] != value) return false;
  return true;
}

void tell(const Finding& f) {
  if (!f.not_defined.empty()) {
    fmt::print("  not defined for this design: {}\n", f.not_defined);
    return;
  }
  for (const auto& [key, value] : f.numbers) fmt::print("  {} {:.4g}\n", key, value);
  for (const auto& t : f.tables) {
    double low = INFINITY, high = -INFINITY;
    for (const double x : t.values) {
      if (std::isnan(x)) continue;
      low = std::min(low, x);
      high = std::max(high, x);
    }
    if (t.rows == 1 && t.cols <= 12) {
      fmt::print("  {:<20}", t.name);
      for (const double x : t.values) fmt::print(" {:.4g}", x);
      fmt::print("\n");
    } else {
      fmt::print("  {:<20} {} x {}, from {:.4g} to {:.4g}\n", t.name, t.rows, t.cols, low, high);
    }
  }
}

}  // namespace

int analyze_command(const Engine& engine, const AnalyzeArgs& args) {
  std::vector<std::string> names = args.only;
  for (const auto& name : names) analysis_kind(name);
  if (names.empty())
    for (const auto& kind : analysis_kinds()) names.emplace_back(kind.name);

  const SavedRun saved = find_saved_run(args.target);
  RunConfig c = saved.config;
  for (const auto& text : args.settings) {
    const Setting s = setting_of(text);
    if (!s.key.starts_with("data.") && !s.key.starts_with("run."))
      fail<config_error>("analyze: {} cannot be changed, needs keys of data.* or run.*", s.key);
    apply(c, s, Command::train);
  }
  locate(c.data);
  const auto data = open_data(c.data);
  if (data->corpus.vocab_size() > c.model.vocab_size)
    fail<config_error>("analyze: the data have a vocabulary of {}, the model one of {}", data->corpus.vocab_size(), c.model.vocab_size);
  const fs::path out = args.out.empty() ? saved.checkpoint.parent_path() / "analysis" : fs::path(args.out);
  std::error_code code;
  fs::create_directories(out, code);
  if (!fs::is_directory(out)) fail<file_error>("analyze: the folder {} cannot be made: {}", out.string(), code.message());

  const auto model = engine.open(c, saved.checkpoint.string());
  const StopRequests stop;
  fmt::print("{} after step {}: {}, L = {}, d = {}\n", saved.checkpoint.string(), saved.step, c.design, c.model.n_layers, c.model.d_model);
  for (const auto& name : names) {
    const AnalysisKind& kind = analysis_kind(name);
    const int windows = args.windows > 0 ? args.windows : kind.windows;
    const int seq = args.seq_len > 0 ? args.seq_len : int(std::min<std::int64_t>(kind.seq, c.train.seq_len));
    const Json key{{"analysis", name}, {"meaning", kind.meaning}, {"design", c.design}, {"n_layers", c.model.n_layers}, {"d_model", c.model.d_model},
                   {"step", saved.step}, {"windows", windows}, {"seq_len", seq}, {"sample_seed", args.seed}, {"data", data->described},
                   {"lr", c.train.lr}, {"seed", c.train.seed}};
    fmt::print("{}: {}\n", name, kind.meaning);
    if (!args.force && is_done(out / (name + ".json"), key)) {
      fmt::print("  done before; --force does it again\n");
      continue;
    }
    const Sample sample = draw_sample(data->corpus, data->split.validation, windows, seq, args.seed);
    Line line(name);
    AnalysisOptions o;
    o.rows = args.rows;
    o.first_run = args.embedding_runs ? FirstRun::embedding : FirstRun::nothing;
    o.progress = [&](std::int64_t done, std::int64_t of) {
      stop.throw_if_any();
      line.show(done, of);
    };
    const Finding f = model->analyze(name, sample, o);
    line.clear();
    write_finding(out, name, f, key);
    tell(f);
  }
  fmt::print("tables: {}\n", out.string());
  return 0;
}

}  // namespace depthbench::app
