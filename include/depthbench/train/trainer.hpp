// Trains one model: batches in, parameters changed. Prints nothing; its caller shows progress and keeps records.
//   Trainer<Cpu, float> trainer(model, sampler, config);
//   while (!trainer.done()) { const StepRecord r = trainer.step(); ... }
// The same seeds give the same bits on any number of threads, and after save, kill and resume.
#pragma once
#include <chrono>

#include "depthbench/data/sampler.hpp"
#include "depthbench/train/checkpoint.hpp"
#include "depthbench/train/config.hpp"
#include "depthbench/train/schedule.hpp"

namespace depthbench {

struct StepRecord {
  std::int64_t step = 0;       // 1 ..
  double loss = 0;             // nats per label, before the step
  double grad_norm = 0;        // before clipping
  double lr = 0;
  std::int64_t tokens = 0;     // seen so far, this step included
  double time_s = 0;           // of this step
  bool diverged = false;       // loss or gradient is no number any more, or the loss is beyond three times chance
};

template <class Device, class R> class Trainer {
 public:
  // model: with parameters allocated (initialize()).
  Trainer(Transformer<Device, R>& model, WindowSampler& sampler, const TrainConfig& config)
      : model_(&model), sampler_(&sampler), config_(config), tape_(model.parameters().device()), adamw_(model.parameters(), with_storage(config)),
        total_(total_steps(config, model.parameters().numel())) {
    check(config_);
    model.parameters().device().set_products(config.precision == Precision::fp32 ? Products::fp32 : Products::bf16);
    if (sampler.window() != config.seq_len)
      fail<config_error>("trainer: the sampler's windows have {} tokens, the config says {}", sampler.window(), config.seq_len);
  }

  std::int64_t total() const { return total_; }
  std::int64_t done_steps() const { return adamw_.steps(); }
  bool done() const { return done_steps() >= total_; }
  const TrainConfig& config() const { return config_; }
  Tape<Device, R>& tape() { return tape_; }
  Adamw<Device, R>& optimizer() { return adamw_; }

  StepRecord step() {
    const auto start = std::chrono::steady_clock::now();
    StepRecord record;
    record.step = done_steps() + 1;
    record.lr = learning_rate(record.step, total_, config_.warmup_steps(total_), config_.lr, config_.final_lr_fraction);
    const std::int64_t windows = config_.windows(), T = config_.seq_len;
    const double labels = double(windows * (T - 1));
    R* losses = tape_.acquire_buffer(std::size_t(windows));  // one a micro-batch
    std::int64_t parts = 0;
    for (std::int64_t done = 0; done < windows;) {
      const std::int64_t rows = std::min(config_.micro_batch, windows - done);
      tokens_.resize(std::size_t(rows * T));
      targets_.resize(std::size_t(rows * T));
      sampler_->batch(cursor_ + std::uint64_t(done), rows, tokens_, targets_);
      const auto loss = model_->loss(tape_, tokens_, targets_, int(rows), labels, config_.activations);
      tape_.device().copy(losses + parts++, loss.value(), 1);
      tape_.backward(loss);
      done += rows;
    }
    record.grad_norm = adamw_.step(record.lr);
    std::vector<R> part(std::size_t(parts), R(0));  // read when all of the step is on its way: nothing waits before
    tape_.device().download(part.data(), losses, part.size());
    tape_.release_buffer(losses, std::size_t(windows));
    for (const R x : part) record.loss += double(x);
    cursor_ += std::uint64_t(windows);
    record.tokens = std::int64_t(cursor_) * T;
    record.diverged = !std::isfinite(record.loss) || !std::isfinite(record.grad_norm) ||
                      record.loss > 3 * std::log(double(model_->config().vocab_size)) + 1;
    record.time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return record;
  }

  void save(const std::filesystem::path& path, CheckpointNotes notes = {}) {
    notes["train.cursor"] = fmt::format("{}", cursor_);
    notes["train.total_steps"] = fmt::format("{}", total_);
    notes["train.seed"] = fmt::format("{}", config_.seed);
    notes["train.data_seed"] = fmt::format("{}", config_.data_seed);
    save_checkpoint(path, model_->parameters(), &adamw_, notes);
  }
  // Goes on exactly where save() was called. Throws if the file is of a run with other seeds or another length.
  CheckpointNotes resume(const std::filesystem::path& path) {
    const auto notes = load_checkpoint(path, model_->parameters(), &adamw_);
    const auto same = [&]<class Int>(const char* key, Int now) {
      if (const auto then = integer_note<Int>(notes, key, path); then != now)
        fail<config_error>("resume: {} is {} in {} and {} now", key, then, path.string(), now);
    };
    same("train.total_steps", total_);
    same("train.seed", config_.seed);
    same("train.data_seed", config_.data_seed);
    cursor_ = integer_note<std::uint64_t>(notes, "train.cursor", path);
    return notes;
  }

 private:
  static AdamwConfig with_storage(const TrainConfig& c) {
    AdamwConfig a = c.adamw;
    if (c.precision == Precision::bf16_pure) a.storage = Storage::bf16;
    return a;
  }

  Transformer<Device, R>* model_;
  WindowSampler* sampler_;
  TrainConfig config_;
  Tape<Device, R> tape_;
  Adamw<Device, R> adamw_;
  std::int64_t total_;
  std::uint64_t cursor_ = 0;
  std::vector<std::int32_t> tokens_, targets_;
};

}  // namespace depthbench
