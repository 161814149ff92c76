// Runs gathered from anywhere on disk, for the commands that show several.
#pragma once
#include "account.hpp"
#include "report_page.hpp"

namespace depthbench::app {

struct RunSet {
  std::vector<std::filesystem::path> folders;
  std::vector<GridRun> grid;  // results point into it
  Results results;
  ReportFacts facts;
};
// paths: run folders, or folders that hold runs at any depth.   throws file_error where there is none
RunSet find_run_set(const Engine& engine, const std::vector<std::string>& paths);

// What every design costs at every shape of the grid; nothing where there is one shape only.
std::vector<Account> accounts_of(const Engine& engine, const std::vector<GridRun>& grid, const Results& results);

}  // namespace depthbench::app
