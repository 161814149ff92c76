#include "engine.hpp"

#include <thread>

#include "depthbench/train/evaluate.hpp"
#include "depthbench/train/trainer.hpp"
#include "instances.hpp"

namespace depthbench::app {
namespace {

using Transformer32 = Transformer<Cpu, float>;

std::unique_ptr<Residual<Cpu, float>> make_design(const Designs<Cpu, float>& designs, const RunConfig& c) {
  if (!designs.has(c.design))
    fail<config_error>("residual.design is {}, needs one of {}; the nearest is {}", c.design, designs.names(),
                       nearest(c.design, designs.list()));
  DesignOptions options;
  for (const auto& [name, value] : options_of(c, designs.list())) options.set(name, value);
  return designs.make(c.design, options);
}

// Evaluation runs over as many rows as a micro-batch has, so that it needs no memory of its own.
struct Held : Model {
  Held(const Designs<Cpu, float>& designs, const RunConfig& c)
      : cpu(c.threads), model(cpu, c.model, make_design(designs, c)), tape(cpu) {
    cpu.set_products(c.train.precision == Precision::fp32 ? Products::fp32 : Products::bf16);
  }
  ValidationLoss validate(const ValidationSet& set, std::int64_t rows,
                          const EvaluationProgress& progress) override {
    return evaluate(model, tape, set, rows, progress);
  }
  Cpu cpu;
  Transformer32 model;
  Tape<Cpu, float> tape;
};

struct Trained final : Training {
  Trained(const Designs<Cpu, float>& designs, const RunConfig& c, const Data& data)
      : cpu(c.threads),
        model(cpu, c.model, make_design(designs, c)),
        sampler(data.corpus, data.split.train, c.train.seq_len, c.train.data_seed) {
    model.initialize(c.train.seed);
    trainer.emplace(model, sampler, c.train);
  }
  StepRecord step() override { return trainer->step(); }
  std::int64_t done_steps() const override { return trainer->done_steps(); }
  std::int64_t total_steps() const override { return trainer->total(); }
  void save(const std::string& path, const Notes& notes) override { trainer->save(path, notes); }
  void save_weights(const std::string& path, const Notes& notes) override {
    save_checkpoint<Cpu, float>(path, model.parameters(), nullptr, notes);
  }
  void resume(const std::string& path) override { trainer->resume(path); }
  std::size_t memory_peak() const override { return const_cast<Cpu&>(cpu).memory().peak(); }
  int threads() const override { return cpu.threads(); }
  ValidationLoss validate(const ValidationSet& set, std::int64_t rows,
                          const EvaluationProgress& progress) override {
    return evaluate(model, trainer->tape(), set, rows, progress);
  }

  Cpu cpu;
  Transformer32 model;
  WindowSampler sampler;
  std::optional<Trainer<Cpu, float>> trainer;
};

}  // namespace

Engine::Engine(const AddDesigns& add)
    : designs_(std::make_unique<Designs<Cpu, float>>()), counted_(std::make_unique<Designs<ShapeOnly, float>>()) {
  if (add.trained) add.trained(*designs_);
  if (add.counted) add.counted(*counted_);
}
Engine::~Engine() = default;

std::vector<std::string> Engine::designs() const { return designs_->list(); }

PartCounts Engine::count(const RunConfig& c) const {
  Cpu cpu(1);
  const Transformer32 model(cpu, c.model, make_design(*designs_, c));
  const auto& p = const_cast<Transformer32&>(model).parameters();
  return {p.numel(Part::embedding), p.numel(Part::backbone), p.numel(Part::norm), p.numel(Part::residual),
          p.numel(Part::head)};
}

std::unique_ptr<Training> Engine::train(const RunConfig& c, const Data& data) const {
  return std::make_unique<Trained>(*designs_, c, data);
}

std::unique_ptr<Model> Engine::open(const RunConfig& c, const std::string& checkpoint) const {
  auto held = std::make_unique<Held>(*designs_, c);
  held->model.initialize(0);
  load_checkpoint<Cpu, float>(checkpoint, held->model.parameters(), nullptr);
  return held;
}

std::string Engine::gemm_name() { return Cpu::gemm_name(); }
int Engine::hardware_threads() { return std::max(1, int(std::thread::hardware_concurrency())); }
std::string Engine::vector_width() {
#if defined(__AVX512F__)
  const char* set = " (AVX-512)";
#elif defined(__AVX2__)
  const char* set = " (AVX2)";
#else
  const char* set = "";
#endif
  return fmt::format("{}-bit vectors{}", 32 * cpu_pack<float>::width, set);
}

}  // namespace depthbench::app
