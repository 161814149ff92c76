// depthbench bench step: a training step against its bound, the FLOPs at the library's measured rate plus the bytes at
// the measured copy bandwidth. FLOPs and bytes are counted by the ops of the very step that is timed.
#include "bench_training.hpp"

namespace depthbench::app {
namespace {

struct StepCost {
  double time_s = 1e300;
  std::array<Tally, section_count> sections;
  double flops() const { double s = 0; for (const auto& t : sections) s += t.flops; return s; }
  double gemm_like_flops() const { return sections[int(Section::gemm)].flops + sections[int(Section::attention)].flops; }
  double bytes() const {  // of all but matrix products, whose rate was measured with their own
    double s = 0;
    for (int i = 0; i < section_count; ++i) if (Section(i) != Section::gemm) s += sections[std::size_t(i)].bytes;
    return s;
  }
  double counted_s() const { double s = 0; for (const auto& t : sections) s += t.time_s; return s; }
};

}  // namespace

int bench_step(const BenchOptions& o) {
  const ModelConfig c = bench_model(o);
  const std::int64_t tokens = std::int64_t(o.seq_len) * o.batch;
  Cpu cpu(o.threads);
  cpu.set_products(products_of(o));
  const double bandwidth = copy_bytes_per_s(o.threads, 3), rate = gemm_flops_per_s(cpu, c, tokens, o.repeats);
  if (!o.json) {
    fmt::print("d {} L {} heads {} ffn {} T {} batch {} V {}, {} threads, {}, {}\n", c.d_model, c.n_layers, c.n_heads, c.ffn_hidden, o.seq_len, o.batch, c.vocab_size, cpu.threads(), Cpu::gemm_name(), o.precision);
    fmt::print("measured here: matrix products of this step {:.0f} GFLOP/s, copy {:.1f} GB/s\n\n", rate * 1e-9, bandwidth * 1e-9);
    fmt::print("{:<12} {:>8} {:>9} {:>8} {:>6}  ", "design", "ms", "tokens/s", "bound ms", "share");
    for (const char* s : section_names) fmt::print("{:>12}", s);
    fmt::print("{:>8} {:>8}\n", "other", "peak MB");
  }
  for (const auto& design : o.designs) {
    BenchTraining training(o, c, design);
    auto& device = training.device;
    StepCost best;
    for (int i = 0; i <= o.repeats; ++i) {
      device.profile().start();
      const auto start = std::chrono::steady_clock::now();
      training.step();
      const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (i > 0 && t < best.time_s) {
        best.time_s = t;
        for (int s = 0; s < section_count; ++s) best.sections[std::size_t(s)] = device.profile()[Section(s)];
      }
    }
    const double bound = best.gemm_like_flops() / rate + best.bytes() / bandwidth;
    const std::size_t peak = device.memory().peak();
    if (o.json) {
      Json sections;
      for (int s = 0; s < section_count; ++s) {
        const Tally& t = best.sections[std::size_t(s)];
        sections[section_names[std::size_t(s)]] = {{"time_s", t.time_s}, {"flops", t.flops}, {"bytes", t.bytes}, {"calls", t.calls}};
      }
      fmt::print("{}\n", Json{{"design", design}, {"d_model", c.d_model}, {"n_layers", c.n_layers}, {"seq_len", o.seq_len}, {"batch", o.batch},
                              {"vocab_size", c.vocab_size}, {"threads", device.threads()}, {"precision", o.precision}, {"time_s", best.time_s}, {"tokens_per_s", double(tokens) / best.time_s},
                              {"bound_s", bound}, {"share_of_bound", bound / best.time_s}, {"gemm_flops_per_s", rate}, {"copy_bytes_per_s", bandwidth},
                              {"peak_bytes", peak}, {"sections", sections}}.dump());
      continue;
    }
    fmt::print("{:<12} {:>8.1f} {:>9.0f} {:>8.1f} {:>5.0f}%  ", design, best.time_s * 1e3, double(tokens) / best.time_s, bound * 1e3, 100 * bound / best.time_s);
    for (int s = 0; s < section_count; ++s) {
      const Tally& t = best.sections[std::size_t(s)];
      const bool products = Section(s) == Section::gemm || Section(s) == Section::attention;
      const double b = (products ? t.flops / rate : 0) + (Section(s) == Section::gemm ? 0 : t.bytes / bandwidth);
      fmt::print("{:>6.1f}({:>3.0f}%)", t.time_s * 1e3, t.time_s > 0 ? 100 * b / t.time_s : 0);
    }
    fmt::print("{:>8.1f} {:>8}\n", (best.time_s - best.counted_s()) * 1e3, peak >> 20);
  }
  if (!o.json) fmt::print("\nsections: ms (their own bound / time). peak: tensors, parameters and moments\n");
  return 0;
}

}  // namespace depthbench::app
