// Models and trainers of one device, behind the interfaces of engine.hpp: compiled for the CPU by engine.cpp, for GPUs by
// engine_cuda.cu.
#pragma once
#include <optional>

#include "depthbench/train/evaluate.hpp"
#include "depthbench/train/trainer.hpp"
#include "engine.hpp"

namespace depthbench::app {

template <class Device>
std::unique_ptr<Residual<Device, float>> make_design(const Designs<Device, float>& designs, const RunConfig& c) {
  if (!designs.has(c.design))
    fail<config_error>("residual.design is {}, needs one of {}; the nearest is {}", c.design, designs.names(),
                       nearest(c.design, designs.list()));
  DesignOptions options;
  for (const auto& [name, value] : options_of(c, designs.list())) options.set(name, value);
  return designs.make(c.design, options);
}

// The analyses compare states on the host: they run on the CPU.
inline Finding analyze_on(const std::string& name, Transformer<Cpu, float>& model, Tape<Cpu, float>& tape, const Sample& sample,
                          const AnalysisOptions& options) {
  return run_analysis(name, model, tape, sample, options);
}
template <class Device>
Finding analyze_on(const std::string&, Transformer<Device, float>&, Tape<Device, float>&, const Sample&, const AnalysisOptions&) {
  fail<config_error>("analyze: the analyses run on the CPU, needs --device cpu");
}

// make_device(): a Device. Evaluation runs over as many rows as a micro-batch has, so that it needs no memory of its own.
template <class Device> struct Held final : Model {
  template <class MakeDevice>
  Held(MakeDevice make_device, const Designs<Device, float>& designs, const RunConfig& c, const std::string& checkpoint)
      : device(make_device()), model(device, c.model, make_design(designs, c)), tape(device) {
    device.set_products(c.train.precision == Precision::fp32 ? Products::fp32 : Products::bf16);
    model.initialize(0);
    load_checkpoint<Device, float>(checkpoint, model.parameters(), nullptr);
  }
  ValidationLoss validate(const ValidationSet& set, std::int64_t rows, const EvaluationProgress& progress) override {
    return evaluate(model, tape, set, rows, progress);
  }
  Finding analyze(const std::string& name, const Sample& sample, const AnalysisOptions& options) override {
    return analyze_on(name, model, tape, sample, options);
  }
  Device device;
  Transformer<Device, float> model;
  Tape<Device, float> tape;
};

template <class Device> struct Trained final : Training {
  // make_ranks(device): what joins this process with the others of its job
  template <class MakeDevice, class MakeRanks>
  Trained(MakeDevice make_device, MakeRanks make_ranks, const Designs<Device, float>& designs, const RunConfig& c, const Data& data)
      : device(make_device()),
        ranks(make_ranks(device)),
        model(device, c.model, make_design(designs, c)),
        sampler(data.corpus, data.split.train, c.train.seq_len, c.train.data_seed) {
    model.initialize(c.train.seed);
    trainer.emplace(model, sampler, c.train, ranks.get());
  }
  StepRecord step(LayerStatistics* statistics) override { return trainer->step(statistics); }
  std::int64_t done_steps() const override { return trainer->done_steps(); }
  std::int64_t total_steps() const override { return trainer->total(); }
  void save(const std::string& path, const Notes& notes) override { trainer->save(path, notes); }
  void save_weights(const std::string& path, const Notes& notes) override {
    save_checkpoint<Device, float>(path, model.parameters(), nullptr, notes);
  }
  void resume(const std::string& path) override { trainer->resume(path); }
  std::size_t memory_peak() const override {
    if constexpr (Device::replays) return device.memory_peak(); else return const_cast<Device&>(device).memory().peak();
  }
  int threads() const override {
    if constexpr (Device::simt) return 1; else return device.threads();
  }
  ValidationLoss validate(const ValidationSet& set, std::int64_t rows, const EvaluationProgress& progress) override {
    return evaluate(model, trainer->tape(), set, rows, progress);
  }
  Finding analyze(const std::string& name, const Sample& sample, const AnalysisOptions& options) override {
    return analyze_on(name, model, trainer->tape(), sample, options);
  }

  Device device;
  std::unique_ptr<Communicator<float>> ranks;
  Transformer<Device, float> model;
  WindowSampler sampler;
  std::optional<Trainer<Device, float>> trainer;
};

}  // namespace depthbench::app
