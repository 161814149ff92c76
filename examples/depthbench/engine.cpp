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
  Finding analyze(const std::string& name, const Sample& sample, const AnalysisOptions& options) override {
    return run_analysis(name, model, tape, sample, options);
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
  Finding analyze(const std::string& name, const Sample& sample, const AnalysisOptions& options) override {
    return run_analysis(name, model, trainer->tape(), sample, options);
  }

  Cpu cpu;
  Transformer32 model;
  WindowSampler sampler;
  std::optional<Trainer<Cpu, float>> trainer;
};

}  // namespace

Engine::Engine(const AddDesigns& add) : designs_(std::make_unique<Designs<Cpu, float>>()) {
  if (add) add(*designs_);
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

TaskScore Engine::solve(const RunConfig& c, const KHop& task, int tests, const TaskProgress& progress) const {
  const auto start = std::chrono::steady_clock::now();
  Cpu cpu(c.threads);
  cpu.set_products(c.train.precision == Precision::fp32 ? Products::fp32 : Products::bf16);
  Transformer32 model(cpu, c.model, make_design(*designs_, c));
  model.initialize(c.train.seed);
  Tape<Cpu, float> tape(cpu);
  Adamw<Cpu, float> adamw(model.parameters(), c.train.adamw);
  const std::size_t T = std::size_t(task.seq);
  const auto rows_of = [&](std::uint64_t seed, std::uint64_t first, int rows, int hops, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& targets) {
    tokens.resize(std::size_t(rows) * T);
    targets.resize(tokens.size());
    for (std::size_t r = 0; r < std::size_t(rows); ++r)
      task.sample(seed, first + r, std::span(tokens).subspan(r * T, T), std::span(targets).subspan(r * T, T), hops);
  };
  TaskScore score;
  std::vector<std::int32_t> tokens, targets;
  const std::int64_t steps = c.train.steps, tail = std::max<std::int64_t>(1, steps / 10);
  const int rows = int(c.train.batch_tokens / task.seq);
  for (std::int64_t step = 1; step <= steps; ++step) {
    rows_of(c.train.data_seed, std::uint64_t(step - 1) * std::uint64_t(rows), rows, -1, tokens, targets);
    const double labels = double(std::count_if(targets.begin(), targets.end(), [](auto t) { return t != ignored_target; }));
    const auto loss = model.loss(tape, tokens, targets, rows, labels);
    const double value = double(*loss.value());
    tape.backward(loss);
    adamw.step(learning_rate(step, steps, c.train.warmup_steps(steps), c.train.lr, c.train.final_lr_fraction));
    if (step > steps - tail) score.train_loss += value / double(tail);
    score.diverged = score.diverged || !std::isfinite(value);
    if (score.diverged) break;
    progress(step, steps, value);
  }
  for (int k = 0; k <= task.max_hops && !score.diverged; ++k) {
    double right = 0, answered = 0;
    for (int done = 0; done < tests; done += rows) {
      const int now = std::min(rows, tests - done);
      rows_of(c.train.data_seed + 1, std::uint64_t(done), now, k, tokens, targets);  // another seed: none was trained on
      tape.no_grad([&] {
        const auto z = tape.host(model.logits(tape, tokens, now));
        const std::size_t V = std::size_t(c.model.vocab_size);
        for (std::size_t i = 0; i < targets.size(); ++i) {
          if (targets[i] == ignored_target) continue;
          const auto row = z.begin() + std::ptrdiff_t(i * V);
          ++answered;
          right += std::max_element(row, row + std::ptrdiff_t(V)) - row == targets[i];
        }
        return std::vector<Var<Cpu, float>>{};
      });
      tape.clear();
    }
    score.accuracy.push_back(answered > 0 ? right / answered : 0);
  }
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return score;
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
