// Models and trainers behind an interface without templates; engine.cpp alone compiles them, engine_account.cpp what is
// only counted.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analyses.hpp"
#include "app.hpp"
#include "config.hpp"
#include "data.hpp"
#include "depthbench/account/cost.hpp"
#include "depthbench/data/k_hop.hpp"
#include "processes.hpp"

namespace depthbench {
struct StepRecord;
struct LayerStatistics;
}

namespace depthbench::app {

struct PartCounts {  // of parameters
  std::int64_t embedding = 0, backbone = 0, norm = 0, residual = 0, head = 0;
  std::int64_t total() const { return embedding + backbone + norm + residual + head; }
};

using Options = std::map<std::string, double>;  // of a residual design
using Notes = std::map<std::string, std::string>;
using EvaluationProgress = std::function<void(std::uint64_t done, std::uint64_t of)>;

// A model with its weights.
class Model {
 public:
  virtual ~Model() = default;
  virtual ValidationLoss validate(const ValidationSet& set, std::int64_t rows,
                                  const EvaluationProgress& progress = {}) = 0;
  virtual Finding analyze(const std::string& name, const Sample& sample, const AnalysisOptions& options) = 0;
};

// A model in training.
class Training : public Model {
 public:
  virtual StepRecord step(LayerStatistics* statistics = nullptr) = 0;  // filled in if given
  virtual std::int64_t done_steps() const = 0;
  virtual std::int64_t total_steps() const = 0;
  virtual void save(const std::string& path, const Notes& notes) = 0;
  virtual void save_weights(const std::string& path, const Notes& notes) = 0;
  virtual void resume(const std::string& path) = 0;
  virtual std::size_t memory_peak() const = 0;  // bytes of tensors
  virtual int threads() const = 0;
};

// A model trained on samples of a task, each seen once, and how often it answers right.
struct TaskScore {
  std::vector<double> accuracy;  // by number of hops, over answered places of fresh samples
  double train_loss = 0;         // of the last tenth of the steps
  double seconds = 0;
  bool diverged = false;
};
using TaskProgress = std::function<void(std::int64_t step, std::int64_t of, double loss)>;

// Configs here are resolved ones.
class Engine {
 public:
  // processes: those that train together
  Engine(const AddDesigns& add, Processes& processes);
  ~Engine();

  std::vector<std::string> designs() const;
  std::vector<std::string> counted_designs() const;  // those that account() knows
  // Takes no memory for the model.   throws config_error for an unknown design or option
  PartCounts count(const RunConfig& config) const;
  std::unique_ptr<Training> train(const RunConfig& config, const Data& data) const;
  // The weights of a checkpoint, with or without an optimizer.
  std::unique_ptr<Model> open(const RunConfig& config, const std::string& checkpoint) const;

  // train.batch_tokens a step, of windows of task.seq; tested on `tests` fresh samples for each number of hops.
  TaskScore solve(const RunConfig& config, const KHop& task, int tests, const TaskProgress& progress) const;
  // What a model costs, and its parameters alone.
  //   throws config_error for a shape that no model has, an unknown design or option
  Cost account(const std::string& design, const Options& options, const ModelConfig& model, const CountOptions& how) const;
  ParameterCounts count_parameters(const std::string& design, const Options& options, const ModelConfig& model) const;

  static std::string gemm_name();
  static int hardware_threads();
  static std::string vector_width();  // "512-bit vectors (AVX-512)"

 private:
  int threads_of(const RunConfig& config) const;
  Processes* processes_;
  std::unique_ptr<Designs<Cpu, float>> designs_;
  std::unique_ptr<Designs<ShapeOnly, float>> counted_;
};

}  // namespace depthbench::app
