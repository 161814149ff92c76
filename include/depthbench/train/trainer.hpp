// Trains one model: batches in, parameters changed. Prints nothing; its caller shows progress and keeps records.
//   Trainer<Cpu, float> trainer(model, sampler, config);
//   while (!trainer.done()) { const StepRecord r = trainer.step(); ... }
// The same seeds give the same bits on any number of threads, and after save, kill and resume.
#pragma once
#include <chrono>

#include "depthbench/data/sampler.hpp"
#include "depthbench/train/checkpoint.hpp"
#include "depthbench/train/config.hpp"
#include "depthbench/train/gradient_sum.hpp"
#include "depthbench/train/layer_statistics.hpp"
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
  // model: with parameters allocated (initialize()).   ranks: those that train it together; none: this process alone
  Trainer(Transformer<Device, R>& model, WindowSampler& sampler, const TrainConfig& config, Communicator<R>* ranks = nullptr)
      : model_(&model), sampler_(&sampler), config_(config), ranks_(ranks ? ranks : &alone_), tape_(model.parameters().device()),
        adamw_(model.parameters(), with_storage(config)), gradient_(model.parameters(), *ranks_), total_(total_steps(config, model.parameters().numel())) {
    check(config_, ranks_->size());
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

  // statistics: filled in if given; the step is the same.
  StepRecord step(LayerStatistics* statistics = nullptr) {
    const auto start = std::chrono::steady_clock::now();
    StepRecord record;
    record.step = done_steps() + 1;
    record.lr = learning_rate(record.step, total_, config_.warmup_steps(total_), config_.lr, config_.final_lr_fraction);
    const std::int64_t windows = config_.windows(), parts = config_.parts(ranks_->size());
    const std::int64_t mine = parts / ranks_->size(), passes = micro_batches(windows / parts);
    if (statistics) *statistics = {};
    R* losses = tape_.acquire_buffer(std::size_t(mine * passes));  // one a micro-batch
    for (std::int64_t i = 0; i < mine; ++i) {
      const bool last = i + 1 == mine;
      part(mine * ranks_->rank() + i, windows / parts, losses + i * passes, last && mine == 1, i == 0 ? statistics : nullptr);
      if (!last) gradient_.put_aside(i);
      else if (mine > 1) gradient_.last_part(i);
    }
    gradient_.finish();
    if (statistics) statistics->grad_norm = grad_norm_by_block(model_->parameters(), tape_.device(), model_->config().n_layers);
    record.grad_norm = adamw_.step(record.lr);
    record.loss = sum_of(losses, mine * passes);
    tape_.release_buffer(losses, std::size_t(mine * passes));
    cursor_ += std::uint64_t(windows);
    record.tokens = std::int64_t(cursor_) * config_.seq_len;
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
  std::int64_t micro_batches(std::int64_t windows) const { return (windows + config_.micro_batch - 1) / config_.micro_batch; }

  // Forward and backward of one part of the step's batch; send: to the other ranks as well, while the last pass is at work.
  void part(std::int64_t index, std::int64_t windows, R* losses, bool send, LayerStatistics* statistics) {
    const std::int64_t T = config_.seq_len;
    const double labels = double(config_.windows() * (T - 1));
    for (std::int64_t done = 0; done < windows;) {
      const std::int64_t rows = std::min(config_.micro_batch, windows - done);
      tokens_.resize(std::size_t(rows * T));
      targets_.resize(std::size_t(rows * T));
      sampler_->batch(cursor_ + std::uint64_t(index * windows + done), rows, tokens_, targets_);
      typename Transformer<Device, R>::Observer measure;
      if (statistics && done == 0) measure = [&](int, Var<Device, R> z) { statistics->state_rms.push_back(root_mean_square(z)); };
      const auto h = model_->forward(tape_, tokens_, int(rows), config_.activations, measure);
      const auto loss = model_->head_loss(h, targets_, labels);
      tape_.device().copy(losses++, loss.value(), 1);
      done += rows;
      if (send && done == windows && ranks_->size() > 1 && config_.activations == Activations::keep) tape_.backward(loss, R(1), gradient_.send_when_done());
      else tape_.backward(loss);
    }
  }
  // Of all ranks' losses, in the order of the batch. Read when all of the step is on its way: nothing waits before.
  double sum_of(const R* losses, std::int64_t count) {
    std::vector<R> mine(std::size_t(count), R(0));
    tape_.device().download(mine.data(), losses, mine.size());
    std::vector<double> all(mine.size() * std::size_t(ranks_->size()), 0.0);  // the others' places are 0 here: adding ranks changes no bit
    std::copy(mine.begin(), mine.end(), all.begin() + ranks_->rank() * count);
    ranks_->sum(all);
    double sum = 0;
    for (const double x : all) sum += x;
    return sum;
  }

  static AdamwConfig with_storage(const TrainConfig& c) {
    AdamwConfig a = c.adamw;
    if (c.precision == Precision::bf16_pure) a.storage = Storage::bf16;
    return a;
  }

  Transformer<Device, R>* model_;
  WindowSampler* sampler_;
  TrainConfig config_;
  Communicator<R> alone_, *ranks_;
  Tape<Device, R> tape_;
  Adamw<Device, R> adamw_;
  GradientSum<Device, R> gradient_;
  std::int64_t total_;
  std::uint64_t cursor_ = 0;
  std::vector<std::int32_t> tokens_, targets_;
};

}  // namespace depthbench
