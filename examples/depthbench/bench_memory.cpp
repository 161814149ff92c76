// depthbench bench memory: what a training step of each design takes: parameters, gradients and moments are there from the
// start, so that the first step is the whole of it. Memory does not depend on what else the machine does.
#include <fstream>

#include "bench_training.hpp"

namespace depthbench::app {
namespace {

// The most physical memory this process has had, in bytes: VmHWM of Linux, 0 elsewhere. forget() starts it anew.
std::size_t resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) << 10;
  return 0;
}
void forget_resident_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

}  // namespace

int bench_memory(const BenchOptions& o) {
  const ModelConfig c = bench_model(o);
  if (!o.json) {
    fmt::print("d {} L {} heads {} ffn {} T {} batch {} V {}, {}, {}\n\n", c.d_model, c.n_layers, c.n_heads, c.ffn_hidden, o.seq_len, o.batch,
               c.vocab_size, o.precision, o.recompute ? "activations made again" : "activations kept");
    fmt::print("{:<15} {:>12} {:>11} {:>12} {:>9}\n", "design", "parameters", "tensors MB", "resident MB", "loss");
  }
  for (const auto& design : o.designs) {
    forget_resident_peak();
    double loss = 0;
    std::int64_t parameters = 0;
    std::size_t tensors = 0;
    {
      BenchTraining training(o, c, design);
      loss = training.step();
      parameters = training.model.parameters().numel();
      tensors = training.device.memory().peak();
    }
    const std::size_t resident = resident_peak();
    if (o.json) {
      fmt::print("{}\n", Json{{"design", design}, {"parameters", parameters}, {"tensor_bytes", tensors}, {"resident_bytes", resident}, {"loss", loss}}.dump());
    } else {
      fmt::print("{:<15} {:>12} {:>11} {:>12} {:>9.4f}\n", design, parameters, tensors >> 20, resident >> 20, loss);
    }
    std::fflush(stdout);
  }
  if (!o.json) fmt::print("\ntensors: parameters, gradients, moments and the peak of a step. resident: of the process, its libraries included\n");
  return 0;
}

}  // namespace depthbench::app
