// depthbench report: one page over any runs, wherever they lie, with what analyze found in them.
#include "commands.hpp"
#include "report.hpp"
#include "run_set.hpp"

namespace depthbench::app {

namespace fs = std::filesystem;

int report_command(const Engine& engine, const ReportArgs& args) {
  RunSet set = find_run_set(engine, args.runs);
  const fs::path out = args.out.empty() ? fs::path("report") : fs::path(args.out);
  std::error_code code;
  fs::create_directories(out, code);
  if (!fs::is_directory(out)) fail<file_error>("report: the folder {} cannot be made: {}", out.string(), code.message());
  set.facts.published = args.published;
  write_report(set.results, set.facts, accounts_of(engine, set.grid, set.results), out);
  fmt::print("{} runs\nreport: {}\n", set.grid.size(), (out / "index.html").string());
  return 0;
}

}  // namespace depthbench::app
