// What the runs of a sweep came to, and which learning rate served each design best.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "record.hpp"
#include "sweep_grid.hpp"

namespace depthbench::app {

struct Result {
  const GridRun* run = nullptr;
  std::filesystem::path folder;
  Summary summary;     // status unfinished: the numbers are not there yet
  double best_lr = 0;  // of its design; 0: none finished
  bool is_best() const { return best_lr == summary.lr && summary.status == Status::finished; }
};

// Mean and range over seeds of the finished runs of a design at a shape and rate.
struct Point {
  std::string design;
  int n_layers = 0, d_model = 0, runs = 0;
  double lr = 0, mean = 0, low = 0, high = 0;
  double aspect_ratio() const { return double(d_model) / n_layers; }
};

struct Results {
  std::vector<Result> rows;           // as the grid
  std::vector<std::string> designs;   // in the grid's order
  std::vector<Point> best;            // at the design's best rate: designs in order, shapes by aspect ratio
  std::vector<Point> points;          // at every rate
  std::vector<std::string> warnings;  // best rate at the edge of its grid, diverged runs, unequal budgets
};

// Reads the summaries under `out`/runs. Best rate of a design: the lowest mean over shapes of the loss, among
// rates at which no run of the design diverged (or all rates, where every one diverged somewhere).
Results collect_results(const std::vector<GridRun>& grid, const std::filesystem::path& out);
// The same with runs in folders of their own; `folder` is asked once a run, in order.
Results collect_results(const std::vector<GridRun>& grid, const std::function<std::filesystem::path(const GridRun&)>& folder);

// One row a run: design, n_layers, d_model, aspect_ratio, parameters, lr, seed, steps, tokens, train_loss,
// val_loss, best_lr, seconds, status. Losses that do not exist are empty.
std::string results_csv(const Results& results);
std::string results_json(const Results& results);

}  // namespace depthbench::app
