// depthbench train: one run into a folder.
#include "commands.hpp"
#include "plan.hpp"
#include "train.hpp"
#include "words.hpp"

namespace depthbench::app {

RunConfig read_config(RunConfig c, const std::string& file, const std::vector<std::string>& settings,
                      Command command) {
  if (!file.empty())
    for (const auto& s : read_settings(file)) apply(c, s, command);
  for (const auto& text : settings) apply(c, setting_of(text), command);
  return c;
}

namespace {

int told(const Summary& s, const std::string& folder) {
  const auto where = [&](const char* file) { return (std::filesystem::path(folder) / file).string(); };
  if (s.status == Status::interrupted) {
    fmt::print("interrupted after step {} of {}; --resume goes on from {}\n", s.steps, s.total_steps,
               where("checkpoint.safetensors"));
    return exit_interrupted;
  }
  if (s.status == Status::diverged) {
    fmt::print(stderr, "depthbench: diverged at step {} of {}; the record is in {}\n", s.diverged_at_step,
               s.total_steps, where("metrics.jsonl"));
    return exit_diverged;
  }
  fmt::print(
      "finished: {} steps in {}, {} tokens a second, train loss {}, validation loss {}, unigram entropy {}, "
      "peak {}\n",
      s.steps, time_text(s.seconds), count_text(s.tokens_per_s), loss_text(s.train_loss),
      loss_text(s.validation_loss), loss_text(s.unigram_entropy), bytes_text(double(s.peak_memory)));
  return 0;
}

}  // namespace

int train_command(const Engine& engine, const TrainArgs& args) {
  if (args.resume && args.force) fail<config_error>("train: --resume and --force exclude each other");
  RunConfig c;
  if (args.resume && !args.out.empty())  // what is not said again stays as it was
    if (const auto saved = std::filesystem::path(args.out) / "config.toml"; std::filesystem::exists(saved))
      c = read_run_config(saved);
  c = read_config(std::move(c), args.config, args.settings, Command::train);
  locate(c.data);
  const auto data = open_data(c.data);
  c.options = options_of(c, engine.designs());
  resolve(c, data->corpus.vocab_size());
  const std::string out = args.out.empty() ? "runs/" + run_name(c) : args.out;
  const std::string plan = plan_text(engine, c, *data, out);
  if (args.dry_run) {
    fmt::print("{}", plan);
    return 0;
  }

  const StopRequests stop;
  RunFolder folder(out);
  if (folder.has_run() && !args.force) {
    const Status status = folder.status();
    if (!args.resume)
      fail<config_error>(
          "{}: holds {} run; {}--force starts anew", out,
          status == Status::finished   ? "a finished"
          : status == Status::diverged ? "a diverged"
                                       : "an unfinished",
          status == Status::unfinished || status == Status::interrupted ? "--resume goes on with it, " : "");
    folder.expect_same_run(c);
    if (status == Status::finished || status == Status::diverged) {
      fmt::print("{}: nothing is left to do\n", out);
      return told(*read_summary(folder.summary()), out);
    }
  }
  fmt::print("{}\n", plan);
  return told(
      train_run(engine, *data, c, folder, args.resume ? Start::resume : Start::anew, stop, {"", c.log_every}),
      out);
}

}  // namespace depthbench::app
