// depthbench eval: the validation loss of a run or checkpoint.
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "depthbench/io/safetensors.hpp"
#include "run_folder.hpp"
#include "saved_run.hpp"
#include "signals.hpp"
#include "words.hpp"

namespace depthbench::app {

int eval_command(const Engine& engine, const EvalArgs& args) {
  const SavedRun saved = find_saved_run(args.target);
  RunConfig c = saved.config;
  for (const auto& text : args.settings) {
    const Setting s = setting_of(text);
    if (!s.key.starts_with("data.") && !s.key.starts_with("run.") && s.key != "train.seq_len" &&
        s.key != "train.micro_batch")
      fail<config_error>(
          "eval: {} cannot be changed, needs keys of data.*, run.*, train.seq_len or train.micro_batch",
          s.key);
    apply(c, s, Command::train);
  }
  if (!args.data.empty()) {
    std::error_code code;
    const bool text = c.data.format == "text" || (c.data.format == "auto" && !saved.config.data.text.empty());
    c.data.text = text ? args.data : "";
    c.data.tokens = text ? "" : args.data;
  }
  locate(c.data);
  auto data = open_data(c.data);
  if (!args.data.empty()) {
    auto whole = std::make_unique<Data>(*data);
    whole->split.validation = whole->corpus.documents();
    whole->validation_tokens = whole->corpus.size();
    data = std::move(whole);
  }
  if (data->corpus.vocab_size() > c.model.vocab_size)
    fail<config_error>("eval: the data have a vocabulary of {}, the model one of {}",
                       data->corpus.vocab_size(), c.model.vocab_size);
  c.train.batch_tokens = c.train.seq_len * c.train.windows();
  const ValidationSet set = validation_set(*data, c.data, c.train.seq_len);
  const auto model = engine.open(c, saved.checkpoint.string());
  const StopRequests stop;
  const ValidationLoss loss =
      model->validate(set, c.train.micro_batch, [&](std::uint64_t, std::uint64_t) { stop.throw_if_any(); });

  if (args.json) {
    const nlohmann::ordered_json j{{"checkpoint", saved.checkpoint.string()},
                                   {"design", c.design},
                                   {"step", saved.step},
                                   {"data", c.data.text.empty() ? c.data.tokens : c.data.text},
                                   {"validation", c.data.validation},
                                   {"seq_len", c.train.seq_len},
                                   {"loss", loss.mean()},
                                   {"published_loss", loss.published()},
                                   {"sum_nll", loss.sum_nll},
                                   {"labels", loss.labels},
                                   {"real_tokens", loss.real_tokens},
                                   {"unigram_entropy", data->unigram_entropy}};
    fmt::print("{}\n", j.dump());
    return 0;
  }
  fmt::print("{} after step {}\n{}\n", saved.checkpoint.string(), saved.step, data->described);
  fmt::print("validation, {} of {} tokens: {} labels\n",
             c.data.validation == "documents" ? "documents cut to windows" : "packed windows",
             c.train.seq_len, loss.labels);
  fmt::print(
      "loss {} nats a label ({:.4f} bits); in the published convention {} (sum over labels / tokens)\n",
      loss_text(loss.mean()), loss.mean() / std::log(2.0), loss_text(loss.published()));
  fmt::print("unigram entropy {:.4f} nats\n", data->unigram_entropy);
  return 0;
}

}  // namespace depthbench::app
