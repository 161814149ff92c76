// The folder of one run: its files, who holds it, and whether it may be written.
#pragma once
#include <filesystem>
#include <string>

#include "depthbench/io/posix.hpp"
#include "record.hpp"

namespace depthbench::app {

class RunFolder {
 public:
  // Creates it and takes its lock, so that no second process trains in it.   throws file_error
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.toml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path checkpoint() const { return path_ / "checkpoint.safetensors"; }
  std::filesystem::path weights() const { return path_ / "weights.safetensors"; }

  bool has_run() const;  // its config.toml is there
  bool has_checkpoint() const;
  Status status() const;  // of the run in it
  // throws config_error, naming the first difference, if the run in it was told something else than `here`
  void expect_same_run(const RunConfig& here) const;
  void start(const RunConfig& config);  // removes what an earlier run left, writes config.toml

 private:
  std::filesystem::path path_;
  FileDescriptor lock_;
};

// The config saved with a run: of config.toml, or of the metadata of a checkpoint.
RunConfig read_run_config(const std::filesystem::path& config_toml);
RunConfig parse_run_config(const std::string& toml, const std::string& name);

}  // namespace depthbench::app
