#include "train.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "progress.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double mean_of_last(const std::vector<StepLine>& steps) {
  if (steps.empty()) return nan;
  const std::size_t n = std::max<std::size_t>(1, steps.size() / 20);
  double sum = 0;
  for (std::size_t i = steps.size() - n; i < steps.size(); ++i) sum += steps[i].loss;
  return sum / double(n);
}

class Run {
 public:
  Run(const Engine& engine, const Data& data, const RunConfig& config, RunFolder& folder, Start start,
      const StopRequests& stop, const Show& show)
      : config_(config),
        folder_(folder),
        stop_(stop),
        show_(show),
        validation_(validation_set(data, config.data, config.train.seq_len)),
        training_(open(engine, data, start)),
        metrics_(read_metrics(folder.metrics(), training_->done_steps())),
        file_(folder.metrics(), metrics_),
        progress_(show.label, training_->total_steps(), show.every, show.extra) {
    summary_.parameters = engine.count(config);
    summary_.unigram_entropy = data.unigram_entropy;
    saved_at_ = training_->done_steps();
    if (show.notes && saved_at_ > 0) fmt::print("{}goes on after step {}\n", show.label, saved_at_);
  }

  Summary run() {
    try {
      if (due(training_->done_steps()) && !validated(training_->done_steps()))
        validate();  // killed between saving and validating
      while (training_->done_steps() < training_->total_steps()) {
        stop_.throw_if_any();
        if (!step()) return finish(Status::diverged);
      }
      save();
      if (config_.weights) training_->save_weights(folder_.weights().string(), notes());
      if (!validated(training_->total_steps())) validate();
      return finish(std::isfinite(metrics_.validations.back().loss) ? Status::finished : Status::diverged);
    } catch (const interrupted&) {
      save();
      return finish(Status::interrupted);
    }
  }

 private:
  std::unique_ptr<Training> open(const Engine& engine, const Data& data, Start start) {
    if (start == Start::anew || !folder_.has_run()) folder_.start(config_);
    auto training = engine.train(config_, data);
    if (start == Start::resume && folder_.has_checkpoint()) training->resume(folder_.checkpoint().string());
    return training;
  }

  bool step() {  // false: diverged
    const bool look = looked_at(training_->done_steps() + 1);
    LayerStatistics layers;
    const StepRecord r = training_->step(look ? &layers : nullptr);
    const StepLine line{r.step, r.tokens, r.loss, r.grad_norm, r.lr, r.time_s};
    metrics_.steps.push_back(line);
    file_.add(line);
    if (look) file_.add(LayerLine{r.step, layers});
    progress_.step(r, config_.train.batch_tokens);
    if (r.diverged) {
      summary_.diverged_at_step = r.step;
      return false;
    }
    if (config_.checkpoint_every > 0 && r.step % config_.checkpoint_every == 0) save();
    if (due(r.step)) validate();
    return true;
  }

  bool due(std::int64_t step) const {
    return step > 0 && config_.eval_every > 0 && step % config_.eval_every == 0;
  }
  bool looked_at(std::int64_t step) const {  // the first step too, and the last
    const std::int64_t every = config_.statistics_every;
    return every > 0 && (step == 1 || step % every == 0 || step == training_->total_steps());
  }
  bool validated(std::int64_t step) const {
    return !metrics_.validations.empty() && metrics_.validations.back().step == step;
  }
  void validate() {
    const auto loss = training_->validate(validation_, config_.train.micro_batch,
                                          [&](std::uint64_t done, std::uint64_t of) {
                                            stop_.throw_if_any();
                                            progress_.validation(done, of);
                                          });
    const ValidationLine line{training_->done_steps(), loss.mean(), loss.published()};
    metrics_.validations.push_back(line);
    file_.add(line);
    if (!show_.notes) return;
    progress_.clear();
    if (config_.data.validation == "documents")
      fmt::print("{}step {}  validation loss {} by document, {} in the published convention\n", show_.label,
                 line.step, loss_text(line.loss), loss_text(line.published));
    else
      fmt::print("{}step {}  validation loss {}\n", show_.label, line.step, loss_text(line.loss));
  }

  Notes notes() const {
    return {{"depthbench.config", to_toml(config_)},
            {"depthbench.version", version()},
            {"depthbench.step", fmt::format("{}", training_->done_steps())}};
  }
  void save() {
    if (saved_at_ == training_->done_steps() && folder_.has_checkpoint()) return;
    training_->save(folder_.checkpoint().string(), notes());
    saved_at_ = training_->done_steps();
  }

  Summary finish(Status status) {
    progress_.clear();
    Summary& s = summary_;
    s.status = status;
    s.design = config_.design;
    s.n_layers = config_.model.n_layers;
    s.d_model = config_.model.d_model;
    s.lr = config_.train.lr;
    s.seed = config_.train.seed;
    s.steps = training_->done_steps();
    s.total_steps = training_->total_steps();
    s.tokens = s.steps * config_.train.batch_tokens;
    s.train_loss = mean_of_last(metrics_.steps);
    s.validation = config_.data.validation;
    s.validation_loss = status == Status::finished ? metrics_.validations.back().loss : nan;
    s.published_loss = status == Status::finished ? metrics_.validations.back().published : nan;
    for (const auto& line : metrics_.steps) s.seconds += line.time_s;
    s.tokens_per_s = s.seconds > 0 ? double(s.tokens) / s.seconds : nan;
    s.peak_memory = training_->memory_peak();
    s.threads = training_->threads();
    write_summary(folder_.summary(), s, config_);
    return s;
  }

  const RunConfig& config_;
  RunFolder& folder_;
  const StopRequests& stop_;
  const Show& show_;
  ValidationSet validation_;
  std::unique_ptr<Training> training_;
  Metrics metrics_;
  MetricsFile file_;
  Progress progress_;
  Summary summary_;
  std::int64_t saved_at_ = 0;
};

}  // namespace

Summary train_run(const Engine& engine, const Data& data, const RunConfig& config, RunFolder& folder,
                  Start start, const StopRequests& stop, const Show& show) {
  return Run(engine, data, config, folder, start, stop, show).run();
}

}  // namespace depthbench::app
