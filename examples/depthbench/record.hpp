// What a run leaves in its folder, besides config.toml and checkpoint.safetensors:
//   metrics.jsonl   a line a step: step loss grad_norm lr tokens time_s; a line a validation; a line a look at the layers
//   summary.json    what became of it
#pragma once
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config.hpp"
#include "depthbench/train/layer_statistics.hpp"
#include "engine.hpp"

namespace depthbench::app {

struct StepLine {
  std::int64_t step = 0, tokens = 0;
  double loss = 0, grad_norm = 0, lr = 0, time_s = 0;  // NaN where the file has null
};
struct ValidationLine {
  std::int64_t step = 0;
  double loss = 0, published = 0;  // the true mean, and the published convention's
};
struct LayerLine {
  std::int64_t step = 0;
  LayerStatistics layers;
};
struct Metrics {
  std::vector<StepLine> steps;
  std::vector<ValidationLine> validations;
  std::vector<LayerLine> layers;
};

// Lines that are cut off or no JSON are left out; so are those after `last_step`.   no file: nothing
Metrics read_metrics(const std::filesystem::path& file, std::int64_t last_step = INT64_MAX);

class MetricsFile {
 public:
  // Starts with `kept` (rewritten whole, atomically), then appends; each line reaches the system at once.
  MetricsFile(const std::filesystem::path& file, const Metrics& kept);
  void add(const StepLine& line);
  void add(const ValidationLine& line);
  void add(const LayerLine& line);

 private:
  void write(const std::string& line);
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

enum class Status { unfinished, finished, diverged, interrupted };
const char* name_of(Status status);

struct Summary {
  Status status = Status::unfinished;
  std::string design;
  int n_layers = 0, d_model = 0;
  PartCounts parameters;
  double lr = 0;
  std::uint64_t seed = 0;
  std::int64_t steps = 0, total_steps = 0, tokens = 0, diverged_at_step = 0;
  double train_loss = 0;  // mean over the last 5 % of the steps
  std::string validation = "packed";
  double validation_loss = 0, published_loss = 0, unigram_entropy = 0;
  double seconds = 0, tokens_per_s = 0;  // of the steps alone
  std::uint64_t peak_memory = 0;         // bytes of tensors
  int threads = 0;
};

// Through AtomicFile.
void write_summary(const std::filesystem::path& file, const Summary& summary, const RunConfig& config);
// Nothing if there is no such file.   throws format_error if it is no summary
std::optional<Summary> read_summary(const std::filesystem::path& file);

std::string version();  // of the app

}  // namespace depthbench::app
