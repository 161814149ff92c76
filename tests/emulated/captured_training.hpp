// Training with and without captured steps, on any device that replays (backend/repeat.hpp): the same bits, or something of a step
// hangs on the host.
#pragma once
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/trainer.hpp"

namespace depthbench_test {

struct Trained {
  std::vector<double> records, parameters;
  bool untouched = true;  // memory that others held meanwhile
  bool operator==(const Trained&) const = default;
};

// Six steps of a model of two blocks; a step is three parts of two passes.
template <class R, class Device>
Trained captured_training(Device& device, const std::string& design, bool capture, depthbench::Activations activations = depthbench::Activations::keep) {
  using namespace depthbench;
  std::vector<std::int32_t> tokens(400);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * i / 3 % 20);
  const Corpus corpus = corpus_from_tokens(std::move(tokens));
  WindowSampler sampler(corpus, std::vector{TokenRange{0, 400}}, 6, 1);
  Transformer<Device, R> model(device, {20, 8, 2, 2, 1, 6}, Designs<Device, R>().make(design));
  model.initialize(3);
  TrainConfig c;
  c.seq_len = 6;
  c.batch_tokens = 6 * 6;
  c.micro_batch = 1;
  c.gradient_parts = 3;
  c.steps = 6;
  c.lr = 0.05;
  c.activations = activations;
  c.capture = capture;
  Trainer<Device, R> trainer(model, sampler, c);
  Trained all;
  const auto record = [&](const StepRecord& r) { all.records.insert(all.records.end(), {r.loss, r.grad_norm, r.lr}); };
  for (int i = 0; i < 3; ++i) record(trainer.step());  // run, captured, replayed
  // Others take memory between two steps, of every size that a step uses; a replay must not write there.
  const std::size_t largest = 700, in_use = device.memory().in_use();
  std::vector<R*> taken;
  for (std::size_t n = 1; n <= largest; ++n) {
    taken.push_back(device.memory().template acquire<R>(n));
    device.zero(taken.back(), n);
  }
  LayerStatistics statistics;
  record(trainer.step(&statistics));  // not a replay
  all.records.push_back(statistics.grad_norm.at(0));
  while (!trainer.done()) record(trainer.step());
  for (std::size_t n = 1; n <= largest; ++n) {
    std::vector<R> now(n);
    device.download(now.data(), taken[n - 1], n);
    all.untouched = all.untouched && now == std::vector<R>(n);
    device.memory().release(taken[n - 1], n * sizeof(R));
  }
  all.untouched = all.untouched && device.memory().in_use() == in_use;
  for (const auto& p : model.parameters().list()) {
    std::vector<R> v(std::size_t(p.numel()));
    device.download(v.data(), p.value, v.size());
    all.parameters.insert(all.parameters.end(), v.begin(), v.end());
  }
  return all;
}

}  // namespace depthbench_test
