// A model of one design with all that a training step takes, for the benchmarks: made-up tokens, the same for all.
#pragma once
#include "bench_common.hpp"
#include "depthbench/model/transformer.hpp"
#include "depthbench/train/adamw.hpp"
#include "instances.hpp"

namespace depthbench::app {

struct BenchTraining {
  Cpu device;
  Transformer<Cpu, float> model;
  Adamw<Cpu, float> adamw;
  Tape<Cpu, float> tape;
  std::vector<std::int32_t> in, out;
  int batch;
  Activations activations;

  BenchTraining(const BenchOptions& o, const ModelConfig& c, const std::string& design)
      : device(o.threads), model(device, c, Designs<Cpu, float>().make(design)), adamw(initialized(model), adamw_config(o)), tape(device),
        batch(o.batch), activations(o.recompute ? Activations::recompute : Activations::keep) {
    device.set_products(products_of(o));
    const Rng rng(1);
    for (std::size_t i = 0; i < std::size_t(o.seq_len) * std::size_t(batch); ++i) {
      in.push_back(std::int32_t(rng.below(i, std::uint64_t(c.vocab_size))));
      out.push_back((i + 1) % std::size_t(o.seq_len) == 0 ? ignored_target : std::int32_t(rng.below(i + 1, std::uint64_t(c.vocab_size))));
    }
  }
  // Forward, backward, AdamW with clipping. Returns the loss.
  double step() {
    const auto loss = model.loss(tape, in, out, batch, double(in.size()) - batch, activations);
    const double value = double(*loss.value());
    tape.backward(loss);
    adamw.step(1e-3);
    return value;
  }

 private:
  static Parameters<Cpu, float>& initialized(Transformer<Cpu, float>& m) {
    m.initialize(0);
    return m.parameters();
  }
  static AdamwConfig adamw_config(const BenchOptions& o) {
    AdamwConfig a;
    if (o.precision == "bf16_pure") a.storage = Storage::bf16;
    return a;
  }
};

}  // namespace depthbench::app
