#include "engine.hpp"

#include <unistd.h>

#include <charconv>
#include <thread>

#include "engine_cuda.hpp"
#include "engine_model.hpp"
#include "follow.hpp"
#include "instances.hpp"

namespace depthbench::app {

Engine::Engine(const AddDesigns& add, Processes& processes)
    : processes_(&processes), designs_(std::make_unique<Designs<Cpu, float>>()), counted_(std::make_unique<Designs<ShapeOnly, float>>()) {
  if (add.trained) add.trained(*designs_);
  if (add.counted) add.counted(*counted_);
}
Engine::~Engine() = default;

std::vector<std::string> Engine::designs() const { return designs_->list(); }

PartCounts Engine::count(const RunConfig& c) const {
  cuda_ordinal(c.device);  // every plan comes by here: a device that is not there is said before anything starts
  Cpu cpu(1);
  Transformer<Cpu, float> model(cpu, c.model, make_design(*designs_, c));
  const auto& p = model.parameters();
  return {p.numel(Part::embedding), p.numel(Part::backbone), p.numel(Part::norm), p.numel(Part::residual),
          p.numel(Part::head)};
}

std::unique_ptr<Training> Engine::train(const RunConfig& c, const Data& data) const {
  return lead(*processes_, c, [&]() -> std::unique_ptr<Training> {
    if (const auto ordinal = cuda_ordinal(c.device)) return train_on_cuda(*ordinal, *processes_, c, data);
    return std::make_unique<Trained<Cpu>>([&] { return Cpu(threads_of(c)); }, [&](Cpu&) { return processes_->cpus(); }, *designs_, c, data);
  });
}

// What a launcher bound this process to, or its share of the machine.
int Engine::threads_of(const RunConfig& c) const {
  if (c.threads > 0 || processes_->size() == 1) return c.threads;
  const int bound = hardware_threads(), all = int(::sysconf(_SC_NPROCESSORS_ONLN));
  return bound < all ? bound : std::max(1, all / processes_->local_size());
}

std::unique_ptr<Model> Engine::open(const RunConfig& c, const std::string& checkpoint) const {
  if (const auto ordinal = cuda_ordinal(c.device)) return open_on_cuda(*ordinal, c, checkpoint);
  return std::make_unique<Held<Cpu>>([&] { return Cpu(c.threads); }, *designs_, c, checkpoint);
}

std::optional<int> cuda_ordinal(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  int ordinal = -1;
  const char* end = device.data() + device.size();
  if (!device.starts_with("cuda:") || std::from_chars(device.data() + 5, end, ordinal).ptr != end || ordinal < 0)
    fail<config_error>("run.device is {}, needs cpu or cuda:0, cuda:1, ...", device);
  if (!cuda_built())
    fail<config_error>("run.device is {}: this program was built without CUDA (configure with -DDEPTHBENCH_CUDA=ON)", device);
  return ordinal;
}

TaskScore Engine::solve(const RunConfig& c, const KHop& task, int tests, const TaskProgress& progress) const {
  const auto start = std::chrono::steady_clock::now();
  Cpu cpu(c.threads);
  cpu.set_products(c.train.precision == Precision::fp32 ? Products::fp32 : Products::bf16);
  Transformer<Cpu, float> model(cpu, c.model, make_design(*designs_, c));
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
