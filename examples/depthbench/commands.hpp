// The commands of the app, each with what the command line tells it. They return exit codes and throw errors.
#pragma once
#include <string>
#include <vector>

#include "engine.hpp"
#include "record.hpp"

namespace depthbench::app {

inline constexpr int exit_diverged = 4, exit_interrupted = 130;

struct TrainArgs {
  std::string config, out;
  std::vector<std::string> settings;  // key=value
  bool dry_run = false, resume = false, force = false;
};
struct SweepArgs {
  std::string config, out;
  std::vector<std::string> settings;
  bool dry_run = false, force = false;
};
struct EvalArgs {
  std::string target;  // a run's folder, or a checkpoint
  std::string data;    // evaluate all of this file or folder instead of the run's held-out part
  std::vector<std::string> settings;  // of data.*, run.*, train.seq_len, train.micro_batch
  bool json = false;
};
struct AnalyzeArgs {
  std::string target;  // a run's folder, or a checkpoint
  std::string out;     // folder of the tables; by default analysis/ beside the checkpoint
  std::vector<std::string> only;      // analyses, by default all
  std::vector<std::string> settings;  // of data.*, run.*
  int windows = 0, seq_len = 0;       // 0: as published, with windows no longer than those trained on
  int rows = 4;                       // windows of one forward pass
  std::uint64_t seed = 42;
  bool embedding_runs = false, force = false;
};
struct ReportArgs {
  std::vector<std::string> runs;  // run folders, or folders that hold some
  std::string out;                // folder of the report, by default "report"
  bool published = false;
};
struct TaskArgs {
  std::string config, out;
  std::vector<std::string> settings;  // as of sweep
  KHop task{4, 8, 64};
  int tests = 256;  // samples a number of hops
};
struct TeachArgs {
  std::vector<std::string> runs;  // as for report; none: no analyses are shown
  std::string sources = "include/depthbench/residual", out;
};
struct InfoArgs {
  std::string target;  // empty: about the program
  bool json = false;
};

struct AccountArgs {
  std::vector<std::string> designs;  // none: pre_ln, or of a tier all
  std::int64_t layers = 24, d_model = 1024, ffn = 0, heads = 16, kv_heads = 0, vocab = 50280, seq_len = 4096, batch = 1;
  int threads = 1;
  std::string tier, svg, device;
  std::vector<std::string> options;  // name=value, of the designs
  double tokens = 0, price = 0;
  bool bf16 = false, json = false, csv = false;
};
struct ShapesArgs {
  std::string budget, design;
  double tolerance = 4, ffn_factor = 8.0 / 3, min_aspect = 6, max_aspect = 110;  // tolerance: %
  int vocab = 50280, heads = 16, head_size = 0, heads_per_kv = 1;
  std::vector<int> layers;
  bool count_design = false, backbone = false, nearest = false, json = false;
};

int train_command(const Engine& engine, const TrainArgs& args);
int sweep_command(const Engine& engine, const SweepArgs& args);
int eval_command(const Engine& engine, const EvalArgs& args);
int analyze_command(const Engine& engine, const AnalyzeArgs& args);
int report_command(const Engine& engine, const ReportArgs& args);
int task_command(const Engine& engine, const TaskArgs& args);
int teach_command(const Engine& engine, const TeachArgs& args);
int info_command(const Engine& engine, const InfoArgs& args);
int account_command(const Engine& engine, const AccountArgs& args);
int shapes_command(const Engine& engine, const ShapesArgs& args);

// "400M" -> 4e8.   throws config_error, naming `what`
double amount(const std::string& what, const std::string& text);

// Defaults, then the file (if any), then key=value.
RunConfig read_config(RunConfig base, const std::string& file, const std::vector<std::string>& settings,
                      Command command);

}  // namespace depthbench::app
