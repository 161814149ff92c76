#include "follow.hpp"

#include <csignal>
#include <exception>

#include "depthbench/train/trainer.hpp"
#include "run_folder.hpp"

namespace depthbench::app {
namespace {

// What rank 0 tells, a word and what goes with it:  "train TOML"  "resume PATH"  "step"  "leave"  "end"
std::pair<std::string, std::string> order_of(const std::string& text) {
  const std::size_t space = text.find(' ');
  return {text.substr(0, space), space == std::string::npos ? "" : text.substr(space + 1)};
}

// What one rank does alone while the others wait for it must not fail silently: they would wait for ever.
template <class F> auto together(Processes& p, F f) {
  try {
    return f();
  } catch (const std::exception& e) {
    fmt::print(stderr, "depthbench: rank {} of {}: {}\n", p.rank(), p.size(), e.what());
    std::fflush(stderr);
    p.abort(1);
    throw;  // not reached
  }
}

class Leading final : public Training {
 public:
  Leading(Processes& p, const RunConfig& config, const std::function<std::unique_ptr<Training>()>& inner) : p_(p) {
    p_.broadcast("train " + to_toml(config));
    inner_ = together(p_, inner);
  }
  ~Leading() override { p_.broadcast("leave"); }

  StepRecord step(LayerStatistics* statistics) override {
    p_.broadcast("step");
    return together(p_, [&] { return inner_->step(statistics); });
  }
  void resume(const std::string& path) override {
    p_.broadcast("resume " + path);
    together(p_, [&] { inner_->resume(path); });
  }
  // ---- by rank 0 alone
  std::int64_t done_steps() const override { return inner_->done_steps(); }
  std::int64_t total_steps() const override { return inner_->total_steps(); }
  void save(const std::string& path, const Notes& notes) override { inner_->save(path, notes); }
  void save_weights(const std::string& path, const Notes& notes) override { inner_->save_weights(path, notes); }
  std::size_t memory_peak() const override { return inner_->memory_peak(); }
  int threads() const override { return inner_->threads(); }
  ValidationLoss validate(const ValidationSet& set, std::int64_t rows, const EvaluationProgress& progress) override {
    return inner_->validate(set, rows, progress);
  }
  Finding analyze(const std::string& name, const Sample& sample, const AnalysisOptions& options) override {
    return inner_->analyze(name, sample, options);
  }

 private:
  Processes& p_;
  std::unique_ptr<Training> inner_;
};

}  // namespace

std::unique_ptr<Training> lead(Processes& processes, const RunConfig& config, std::function<std::unique_ptr<Training>()> inner) {
  if (processes.size() == 1 || processes.rank() > 0) return inner();
  check(config.train, processes.size());  // said once, by rank 0
  return std::make_unique<Leading>(processes, config, inner);
}

int follow(const Engine& engine, Processes& processes) {
  for (const int s : {SIGINT, SIGTERM}) std::signal(s, SIG_IGN);  // a launcher tells all of them; rank 0 decides
  std::unique_ptr<const Data> data;
  std::unique_ptr<Training> training;
  for (;;) {
    const auto [word, rest] = order_of(processes.broadcast(""));
    if (word == "end") return 0;
    together(processes, [&, word = word, rest = rest] {
      if (word == "train") {
        RunConfig c = parse_run_config(rest, "the run of rank 0");
        data = open_data(c.data);
        training = engine.train(c, *data);
      } else if (word == "resume") {
        training->resume(rest);
      } else if (word == "step") {
        training->step();
      } else if (word == "leave") {
        training.reset();
        data.reset();
      }
    });
  }
}
void end_followers(Processes& processes) {
  if (processes.size() > 1 && processes.rank() == 0) processes.broadcast("end");
}

}  // namespace depthbench::app
