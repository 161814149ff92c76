#include "saved_run.hpp"

#include "depthbench/io/safetensors.hpp"
#include "run_folder.hpp"

namespace depthbench::app {

namespace fs = std::filesystem;

SavedRun find_saved_run(const std::string& path) {
  SavedRun saved;
  saved.checkpoint = path;
  if (fs::is_directory(path)) {
    saved.checkpoint = fs::path(path) / "checkpoint.safetensors";
    if (!fs::exists(saved.checkpoint)) saved.checkpoint = fs::path(path) / "weights.safetensors";
    if (!fs::exists(saved.checkpoint))
      fail<file_error>("{}: holds no checkpoint.safetensors (no run, or one that has not saved yet)", path);
  } else if (!fs::exists(path)) {
    fail<file_error>("{}: there is no such run folder or checkpoint", path);
  }
  const SafeTensors file(saved.checkpoint);
  const auto note = [&](const char* key) {
    const auto it = file.metadata().find(key);
    if (it == file.metadata().end())
      fail<format_error>("{}: has no {} in its metadata: not written by this program",
                         saved.checkpoint.string(), key);
    return it->second;
  };
  try {
    saved.config = parse_run_config(note("depthbench.config"), saved.checkpoint.string() + " (its config)");
  } catch (const config_error& e) {
    fail<format_error>("{}", e.what());
  }
  const std::string step = note("depthbench.step");
  const auto [end, code] = std::from_chars(step.data(), step.data() + step.size(), saved.step);
  if (code != std::errc{} || end != step.data() + step.size())
    fail<format_error>("{}: depthbench.step is '{}', needs a whole number", saved.checkpoint.string(), step);
  return saved;
}

}  // namespace depthbench::app
