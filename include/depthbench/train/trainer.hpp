// Trains one model: batches in, parameters changed. Prints nothing; its caller shows progress and keeps records.
//   Trainer<Cpu, float> trainer(model, sampler, config);
//   while (!trainer.done()) { const StepRecord r = trainer.step(); ... }
// The same seeds give the same bits on any number of threads, and after save, kill and resume.
#pragma once
#include <chrono>

#include "depthbench/backend/repeat.hpp"
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
        adamw_(model.parameters(), with_storage(config)), gradient_(model.parameters(), *ranks_), repeat_(tape_.device()),
        total_(total_steps(config, model.parameters().numel())) {
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
    load_batches();
    adamw_.prepare(record.lr);
    if (statistics) *statistics = {};
    const auto work = [&] { launch(statistics); };
    if (config_.capture && !statistics && ranks_->size() == 1) repeat_(work); else work();
    record.grad_norm = adamw_.finish();
    record.loss = sum_of_losses();
    cursor_ += std::uint64_t(config_.windows());
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
  // A step's batch is `parts`, of which this rank has its share, one after the other, each in passes of at most micro_batch windows.
  std::int64_t parts() const { return config_.parts(ranks_->size()) / ranks_->size(); }  // of this rank
  std::int64_t windows_of_part() const { return config_.windows() / config_.parts(ranks_->size()); }

  // The step's tokens, pass by pass, to where the device reads them.
  void load_batches() {
    const std::int64_t T = config_.seq_len;
    std::size_t pass = 0;
    for (std::int64_t i = 0; i < parts(); ++i) for (std::int64_t done = 0; done < windows_of_part(); ++pass) {
      const std::int64_t rows = std::min(config_.micro_batch, windows_of_part() - done);
      if (pass == batches_.size()) batches_.push_back(std::make_shared<TokenBatch<Device>>(tape_.device(), rows * T));
      tokens_.resize(std::size_t(rows * T));
      targets_.resize(std::size_t(rows * T));
      sampler_->batch(cursor_ + std::uint64_t((parts() * ranks_->rank() + i) * windows_of_part() + done), rows, tokens_, targets_);
      check_tokens(tokens_, model_->config().vocab_size);
      batches_[pass]->fill(tokens_, targets_);
      done += rows;
    }
    if (!losses_) losses_ = tape_.shared_buffer(batches_.size());
  }
  // All of the step that the device does.
  void launch(LayerStatistics* statistics) {
    std::size_t pass = 0;
    for (std::int64_t i = 0; i < parts(); ++i) {
      const bool last = i + 1 == parts();
      for (const std::size_t end = pass + batches_.size() / std::size_t(parts()); pass < end; ++pass)
        this->pass(pass, last && parts() == 1 && pass + 1 == end, pass == 0 ? statistics : nullptr);
      if (!last) gradient_.put_aside(i);
      else if (parts() > 1) gradient_.last_part(i);
    }
    gradient_.finish();
    if (statistics) statistics->grad_norm = grad_norm_by_block(model_->parameters(), tape_.device(), model_->config().n_layers);
    adamw_.launch();
  }
  // Forward and backward of one pass; send: to the other ranks as well, while it is at work.
  void pass(std::size_t i, bool send, LayerStatistics* statistics) {
    const Batch& batch = batches_[i];
    const double labels = double(config_.windows() * (config_.seq_len - 1));
    typename Transformer<Device, R>::Observer measure;
    if (statistics) measure = [&](int, Var<Device, R> z) { statistics->state_rms.push_back(root_mean_square(z)); };
    const auto h = model_->forward(tape_, batch, int(batch->size() / config_.seq_len), config_.activations, measure);
    const auto loss = model_->head_loss(h, batch, labels);
    tape_.device().copy(losses_.get() + i, loss.value(), 1);
    if (send && ranks_->size() > 1 && config_.activations == Activations::keep) tape_.backward(loss, R(1), gradient_.send_when_done());
    else tape_.backward(loss);
  }
  // Of all ranks' losses, in the order of the batch. Read when all of the step is on its way: nothing waits before.
  double sum_of_losses() {
    std::vector<R> mine(batches_.size(), R(0));
    tape_.device().download(mine.data(), losses_.get(), mine.size());
    std::vector<double> all(mine.size() * std::size_t(ranks_->size()), 0.0);  // the others' places are 0 here: adding ranks changes no bit
    std::copy(mine.begin(), mine.end(), all.begin() + std::ptrdiff_t(mine.size()) * ranks_->rank());
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
  Repeat<Device> repeat_;
  std::int64_t total_;
  std::uint64_t cursor_ = 0;
  std::vector<std::int32_t> tokens_, targets_;
  using Batch = std::shared_ptr<TokenBatch<Device>>;
  std::vector<Batch> batches_;  // one a pass
  std::shared_ptr<R> losses_;   // one a pass, on the device
};

}  // namespace depthbench
