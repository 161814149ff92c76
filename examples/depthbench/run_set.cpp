#include "run_set.hpp"

#include <algorithm>
#include <set>

#include "run_folder.hpp"

namespace depthbench::app {
namespace {

namespace fs = std::filesystem;

// A run's own folder, or one that holds runs at any depth.
void find_runs(const fs::path& path, std::vector<fs::path>& runs) {
  if (fs::exists(path / "config.toml")) {
    runs.push_back(path);
    return;
  }
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(path)) if (entry.is_directory() && !entry.is_symlink()) inside.push_back(entry.path());
  std::sort(inside.begin(), inside.end());
  for (const auto& folder : inside) find_runs(folder, runs);
}

}  // namespace

RunSet find_run_set(const Engine& engine, const std::vector<std::string>& paths) {
  RunSet set;
  auto& [folders, grid, results, facts] = set;
  for (const auto& run : paths) {
    if (!fs::is_directory(run)) fail<file_error>("there is no folder {}", run);
    const std::size_t before = folders.size();
    find_runs(run, folders);
    if (folders.size() == before) fail<file_error>("{} holds no run (a folder with config.toml)", run);
  }
  for (const auto& folder : folders) {
    GridRun run{folder.lexically_normal().filename().string(), read_run_config(folder / "config.toml"), {}, 0};
    if (run.name.empty()) run.name = folder.lexically_normal().parent_path().filename().string();
    run.parameters = engine.count(run.config);
    if (const auto s = read_summary(folder / "summary.json")) {
      run.steps = s->total_steps;
      if (facts.unigram_entropy == 0) facts.unigram_entropy = s->unigram_entropy;
    }
    const auto& data = run.config.data.text.empty() ? run.config.data.tokens : run.config.data.text;
    const std::string name = fs::path(data).filename().string();
    if (facts.described.find(name) == std::string::npos) facts.described += (facts.described.empty() ? "Text: " : ", ") + name;
    facts.by_document = facts.by_document || run.config.data.validation == "documents";
    grid.push_back(std::move(run));
  }
  std::size_t next = 0;
  results = collect_results(grid, [&](const GridRun&) { return folders[next++]; });
  return set;
}

std::vector<Account> accounts_of(const Engine& engine, const std::vector<GridRun>& grid,
                                 const Results& results) {
  std::set<std::pair<int, int>> shapes;
  for (const GridRun& run : grid) shapes.insert({run.config.model.n_layers, run.config.model.d_model});
  std::vector<Account> accounts;
  const auto counted = engine.counted_designs();
  if (shapes.size() < 2) return accounts;
  for (const auto& design : results.designs) {
    if (std::find(counted.begin(), counted.end(), design) == counted.end()) continue;
    std::set<std::pair<int, int>> seen;
    for (const GridRun& run : grid) {
      const RunConfig& c = run.config;
      if (c.design != design || !seen.insert({c.model.n_layers, c.model.d_model}).second) continue;
      const CountOptions how{.seq_len = c.train.seq_len,
                             .batch = std::min(c.train.micro_batch, c.train.windows())};
      accounts.push_back({design, c.options, engine.account(design, c.options, c.model, how)});
    }
  }
  return accounts;
}

}  // namespace depthbench::app
