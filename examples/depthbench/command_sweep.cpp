// depthbench sweep: the runs of a grid one after the other, then a report.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "commands.hpp"
#include "depthbench/io/atomic_file.hpp"
#include "plan.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "run_set.hpp"
#include "results.hpp"
#include "train.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

namespace fs = std::filesystem;

bool over(Status s) { return s == Status::finished || s == Status::diverged; }

// FLOPs a second of what is done, and what is left.
struct Pace {
  double flops = 0, seconds = 0, left = 0;
  double rate() const { return seconds > 0 ? flops / seconds : 0; }
};
Pace pace_of(const Results& results) {
  Pace p;
  for (const auto& r : results.rows) {
    if (r.summary.status == Status::finished) {
      p.flops += r.run->flops();
      p.seconds += r.summary.seconds;
    }
    if (!over(r.summary.status)) p.left += r.run->flops();
  }
  return p;
}

void print_runs(const Results& results) {
  const Pace pace = pace_of(results);
  fmt::print("{:<34} {:>3} {:>5} {:>7} {:>11} {:>7} {:>8} {:>10}  {}\n", "run", "L", "d", "d / L",
             "parameters", "steps", "tokens", "time", "status");
  std::int64_t tokens = 0;
  for (const auto& r : results.rows) {
    const auto& m = r.run->config.model;
    const double seconds = r.summary.status == Status::finished ? r.summary.seconds
                           : pace.rate() > 0                    ? r.run->flops() / pace.rate()
                                                                : -1;
    tokens += r.run->tokens();
    fmt::print("{:<34} {:>3} {:>5} {:>7.4g} {:>11} {:>7} {:>8} {:>10}  {}\n", r.run->name, m.n_layers,
               m.d_model, double(m.d_model) / m.n_layers, r.run->parameters.total(), r.run->steps,
               count_text(double(r.run->tokens())), seconds < 0 ? "?" : time_text(seconds),
               over(r.summary.status) ? name_of(r.summary.status) : "to do");
  }
  fmt::print("{} runs, {} tokens", results.rows.size(), count_text(double(tokens)));
  if (pace.rate() > 0)
    fmt::print(", about {} left at the rate of the finished runs", time_text(pace.left / pace.rate()));
  fmt::print("\n");
}

void print_results(const Results& results) {
  std::set<std::pair<int, int>> shapes;  // deepest last
  for (const auto& p : results.best) shapes.insert({p.n_layers, p.d_model});
  if (shapes.empty()) return;
  fmt::print("\nvalidation loss (nats a token){}\n{:<16} {:>8}", " at each design's best learning rate",
             "design", "lr");
  for (const auto& [L, d] : shapes) fmt::print(" {:>16}", fmt::format("{} x {}", L, d));
  fmt::print("\n");
  for (const auto& design : results.designs) {
    std::string line;
    double lr = 0;
    for (const auto& [L, d] : shapes) {
      std::string cell = "-";
      for (const auto& p : results.best)
        if (p.design == design && p.n_layers == L && p.d_model == d) {
          cell = p.runs > 1 ? fmt::format("{:.4f} ± {:.4f}", p.mean, (p.high - p.low) / 2)
                            : fmt::format("{:.4f}", p.mean);
          lr = p.lr;
        }
      line += fmt::format(" {:>16}", cell);
    }
    fmt::print("{:<16} {:>8} {}\n", design, lr > 0 ? fmt::format("{:g}", lr) : "-", line.substr(1));
  }
}

}  // namespace

int sweep_command(const Engine& engine, const SweepArgs& args) {
  RunConfig config = read_config({}, args.config, args.settings, Command::sweep);
  locate(config.data);
  const auto data = open_data(config.data);
  const std::vector<GridRun> grid = grid_of(engine, config, data->corpus.vocab_size());
  const fs::path out = args.out;
  Results results = collect_results(grid, out);
  if (args.dry_run) {
    print_runs(results);
    return 0;
  }

  const std::vector<Account> accounts = accounts_of(engine, grid, results);
  const StopRequests stop;
  const ReportFacts facts{data->described, data->unigram_entropy, config.data.validation == "documents", false};
  fs::create_directories(out / "runs");
  fmt::print("{}\nunigram entropy of the held-out part {:.4f} nats; {} threads, products by {}, {}\n",
             data->described, data->unigram_entropy,
             config.threads ? config.threads : Engine::hardware_threads(), Engine::gemm_name(),
             Engine::vector_width());
  print_runs(results);
  std::fflush(stdout);
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const GridRun& run = grid[i];
    const std::string label = fmt::format("[{}/{}] {}  ", i + 1, grid.size(), run.name);
    RunFolder folder(out / "runs" / run.name);
    bool anew = !folder.has_run();
    if (!anew && args.force) anew = !differences(read_run_config(folder.config()), run.config).empty();
    if (!anew) {
      folder.expect_same_run(run.config);
      if (over(folder.status())) continue;
    }
    const Pace pace = pace_of(results);
    const double others = pace.left - run.flops(), mine = flops_per_token(run.config, run.parameters);
    const auto left = [=](double tokens_per_s) {
      return fmt::format("  (other runs {})",
                         time_text(others / (pace.rate() > 0 ? pace.rate() : mine * tokens_per_s)));
    };
    const Summary s = train_run(engine, *data, run.config, folder, anew ? Start::anew : Start::resume, stop,
                                {label, 0, left, false});
    results = collect_results(grid, out);
    write_report(results, facts, accounts, out);
    if (s.status == Status::interrupted) {
      fmt::print("{}interrupted after step {} of {}; the same command goes on\n", label, s.steps,
                 s.total_steps);
      return exit_interrupted;
    }
    const Pace now = pace_of(results);
    if (s.status == Status::diverged)
      fmt::print("{}diverged at step {}\n", label, s.diverged_at_step);
    else
      fmt::print("{}train {}  validation {}  {}  {} tok/s{}\n", label, loss_text(s.train_loss),
                 loss_text(s.validation_loss), time_text(s.seconds), count_text(s.tokens_per_s),
                 now.left > 0 ? fmt::format("  (left: about {})", time_text(now.left / now.rate())) : "");
    std::fflush(stdout);
  }
  write_report(results, facts, accounts, out);
  print_results(results);
  for (const auto& w : results.warnings) fmt::print("warning: {}\n", w);
  fmt::print("report: {}\n", (out / "index.html").string());
  return results.points.empty() ? exit_diverged : 0;
}

}  // namespace depthbench::app
