// Runs gathered from anywhere on disk, for the commands that show several.
#pragma once
#include "results.hpp"
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

}  // namespace depthbench::app
