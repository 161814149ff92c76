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
struct InfoArgs {
  std::string target;  // empty: about the program
  bool json = false;
};

int train_command(const Engine& engine, const TrainArgs& args);
int sweep_command(const Engine& engine, const SweepArgs& args);
int eval_command(const Engine& engine, const EvalArgs& args);
int analyze_command(const Engine& engine, const AnalyzeArgs& args);
int report_command(const Engine& engine, const ReportArgs& args);
int task_command(const Engine& engine, const TaskArgs& args);
int info_command(const Engine& engine, const InfoArgs& args);

// Defaults, then the file (if any), then key=value.
RunConfig read_config(RunConfig base, const std::string& file, const std::vector<std::string>& settings,
                      Command command);

}  // namespace depthbench::app
