// Models and trainers behind an interface without templates; engine.cpp alone compiles them, engine_account.cpp what is
// only counted.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app.hpp"
#include "config.hpp"
#include "data.hpp"
#include "depthbench/account/cost.hpp"

namespace depthbench {
struct StepRecord;
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
};

// A model in training.
class Training : public Model {
 public:
  virtual StepRecord step() = 0;
  virtual std::int64_t done_steps() const = 0;
  virtual std::int64_t total_steps() const = 0;
  virtual void save(const std::string& path, const Notes& notes) = 0;
  virtual void save_weights(const std::string& path, const Notes& notes) = 0;
  virtual void resume(const std::string& path) = 0;
  virtual std::size_t memory_peak() const = 0;  // bytes of tensors
  virtual int threads() const = 0;
};

// Configs here are resolved ones.
class Engine {
 public:
  explicit Engine(const AddDesigns& add);
  ~Engine();

  std::vector<std::string> designs() const;
  std::vector<std::string> counted_designs() const;  // those that account() knows
  // Takes no memory for the model.   throws config_error for an unknown design or option
  PartCounts count(const RunConfig& config) const;
  std::unique_ptr<Training> train(const RunConfig& config, const Data& data) const;
  // The weights of a checkpoint, with or without an optimizer.
  std::unique_ptr<Model> open(const RunConfig& config, const std::string& checkpoint) const;

  // What a model costs, and its parameters alone.
  //   throws config_error for a shape that no model has, an unknown design or option
  Cost account(const std::string& design, const Options& options, const ModelConfig& model, const CountOptions& how) const;
  ParameterCounts count_parameters(const std::string& design, const Options& options, const ModelConfig& model) const;

  static std::string gemm_name();
  static int hardware_threads();
  static std::string vector_width();  // "512-bit vectors (AVX-512)"

 private:
  std::unique_ptr<Designs<Cpu, float>> designs_;
  std::unique_ptr<Designs<ShapeOnly, float>> counted_;
};

}  // namespace depthbench::app
