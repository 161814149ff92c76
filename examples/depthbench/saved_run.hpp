// What a path of the command line means: a run's folder, or a checkpoint that carries its config.
#pragma once
#include <filesystem>
#include <string>

#include "config.hpp"

namespace depthbench::app {

struct SavedRun {
  std::filesystem::path checkpoint;
  RunConfig config;
  std::int64_t step = 0;
};
// throws file_error, format_error
SavedRun find_saved_run(const std::string& path);

}  // namespace depthbench::app
