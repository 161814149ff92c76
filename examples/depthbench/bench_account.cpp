// depthbench bench account: ten designs at three shapes, trained for a few steps; memory predicted and measured, and the
// time of each part of the step beside the FLOPs and bytes predicted for it. Exit 1 if a peak is off by more than 10 %.
#include <cmath>

#include "bench_common.hpp"
#include "depthbench/account/work.hpp"
#include "depthbench/model/transformer.hpp"
#include "depthbench/train/adamw.hpp"
#include "engine.hpp"
#include "instances.hpp"

namespace depthbench::app {
namespace {

constexpr double tolerance = 0.10;

struct Measured {
  double peak = 0, time_s = 1e300;
  Work forward, backward;  // seconds
  double optimizer_s = 0;
};

Measured measure(const std::string& design, const ModelConfig& c, const BenchOptions& o) {
  Cpu cpu(o.threads);
  cpu.set_products(products_of(o));
  Transformer<Cpu, float> model(cpu, c, Designs<Cpu, float>().make(design));
  model.initialize(0);
  Adamw<Cpu, float> adamw(model.parameters(), {});
  Tape<Cpu, float> tape(cpu);
  std::vector<std::int32_t> tokens(std::size_t(o.seq_len) * std::size_t(o.batch));
  const Rng rng(1);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = std::int32_t(rng.below(i, std::uint64_t(c.vocab_size)));
  Measured m;
  for (int i = 0; i <= o.repeats; ++i) {  // the first warms up
    cpu.profile().start();
    const auto start = std::chrono::steady_clock::now();
    tape.backward(model.loss(tape, tokens, tokens, o.batch, double(tokens.size()),
                             o.recompute ? Activations::recompute : Activations::keep));
    adamw.step(1e-4);
    const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i == 0 || t >= m.time_s) continue;
    m.time_s = t;
    m.forward = work_of(cpu.profile(), Pass::forward, &Tally::time_s, 1);
    m.backward = work_of(cpu.profile(), Pass::backward, &Tally::time_s, 1);
    m.optimizer_s = cpu.profile()[Section::optimizer].time_s;
  }
  m.peak = double(cpu.memory().peak());
  return m;
}

}  // namespace

int bench_account(const BenchOptions& o) {
  Processes alone;
  const Engine engine({}, alone);
  const auto designs = o.designs.empty() ? engine.designs() : o.designs;
  const int threads = Cpu(o.threads).threads();
  struct Part {
    const char* name;
    double Work::*of;
  };
  constexpr Part parts[] = {{"products", &Work::gemm},
                            {"attention", &Work::attention},
                            {"residual", &Work::residual},
                            {"head", &Work::head},
                            {"other", &Work::other}};
  if (!o.json) {
    fmt::print(
        "T {} batch {} V {}, {} threads, {}; ms (predicted GFLOP, MB moved) of a "
        "step\n\n{:<15}{:>4}{:>5}{:>12}{:>12}{:>8}{:>9}",
        o.seq_len, o.batch, o.vocab_size, threads, Cpu::gemm_name(), "design", "L", "d", "predicted",
        "measured", "off", "step ms");
    for (const auto& p : parts) fmt::print("{:>24}", p.name);
    fmt::print("{:>14}\n", "optimizer ms");
  }
  bool good = true;
  for (const auto& [L, d] : {std::pair{3, 384}, {8, 256}, {18, 160}})
    for (const auto& design : designs) {  // 5 to 6 M parameters without ends
      const ModelConfig c{.vocab_size = o.vocab_size,
                          .d_model = d,
                          .n_layers = L,
                          .n_heads = d / 32,
                          .n_kv_heads = d / 32,
                          .ffn_hidden = ModelConfig::default_ffn(d)};
      const Cost cost = engine.account(
          design, {}, c,
          {.seq_len = o.seq_len, .batch = o.batch, .threads = threads, .bf16_products = products_of(o) == Products::bf16});
      const double predicted = o.recompute ? cost.memory.peak_recompute : cost.memory.peak;
      const Measured m = measure(design, c, o);
      const double off = m.peak / predicted - 1;
      good = good && std::fabs(off) <= tolerance;
      const auto both = [&](const BothPasses& p, double Work::*of) {
        return double(o.batch) * (p.forward.*of + p.backward.*of);
      };
      if (o.json) {
        Json split;
        for (const auto& p : parts)
          split[p.name] = {{"time_s", m.forward.*p.of + m.backward.*p.of},
                           {"predicted_flops", both(cost.flops, p.of)},
                           {"predicted_bytes", both(cost.bytes, p.of)}};
        split["optimizer"] = {{"time_s", m.optimizer_s},
                              {"predicted_flops", cost.optimizer_flops},
                              {"predicted_bytes", cost.optimizer_bytes}};
        fmt::print("{}\n", Json{{"design", design},
                                {"n_layers", L},
                                {"d_model", d},
                                {"seq_len", o.seq_len},
                                {"batch", o.batch},
                                {"threads", threads},
                                {"predicted_peak_bytes", predicted},
                                {"measured_peak_bytes", m.peak},
                                {"step_s", m.time_s},
                                {"parts", split}}
                               .dump());
        continue;
      }
      fmt::print("{:<15}{:>4}{:>5}{:>9.1f} MB{:>9.1f} MB{:>7.2f}%{:>9.1f}", design, L, d, predicted * 1e-6,
                 m.peak * 1e-6, 100 * off, m.time_s * 1e3);
      for (const auto& p : parts) {
        const double t = m.forward.*p.of + m.backward.*p.of;
        fmt::print("{:>24}", fmt::format("{:.1f} ({:.2f}, {:.0f})", t * 1e3, both(cost.flops, p.of) * 1e-9,
                                         both(cost.bytes, p.of) * 1e-6));
      }
      fmt::print("{:>14.1f}\n", m.optimizer_s * 1e3);
    }
  if (!o.json)
    fmt::print("\npeak of tensors: {}. residual: with its norms, which are part of the same passes.{}\n",
               good ? "every one within 10 % of the prediction" : "NOT all within 10 %",
               o.recompute ? " FLOPs and bytes are those without recomputation." : "");
  return good ? 0 : 1;
}

}  // namespace depthbench::app
