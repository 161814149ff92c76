// The command line. The only file that knows CLI11; errors become exit codes here.
#include <CLI/CLI.hpp>

#include "bench.hpp"
#include "commands.hpp"
#include "depthbench/core/error.hpp"
#include "follow.hpp"
#include "parity.hpp"
#include "signals.hpp"

namespace depthbench::app {
namespace {

constexpr const char* settings_help =
    "settings key=value, e.g. residual.design=hc train.lr=1e-3; they win over the file";

int complain(int code, const std::string& what) {
  fmt::print(stderr, "depthbench: {}\n", what);
  return code;
}

int dispatch(int argc, char** argv, const AddDesigns& add, Processes& processes) {
  CLI::App app(
      "depthbench: how deep transformers carry the residual stream. Train, sweep, evaluate, compare.",
      "depthbench");
  app.require_subcommand(1);
  app.set_version_flag("--version", "depthbench " + version());

  std::string device;
  const auto add_device = [&device](CLI::App* command) {
    command->add_option("--device", device, "cpu, or cuda:0 where the app was built with CUDA; short for run.device=");
  };

  TrainArgs train;
  auto* t = app.add_subcommand("train", "train one model into a run folder");
  t->add_option("settings", train.settings, settings_help);
  t->add_option("--config", train.config, "TOML file");
  t->add_option("--out", train.out, "run folder; by default runs/DESIGN_LxD_lrRATE_seedSEED");
  t->add_flag("--dry-run", train.dry_run, "print the plan and stop");
  t->add_flag("--resume", train.resume, "go on from the folder's checkpoint");
  t->add_flag("--force", train.force, "start anew in a folder that holds a run");
  add_device(t);

  t->footer("keys and their defaults, as in a TOML file:\n\n" + to_toml({}));

  SweepArgs sweep;
  auto* s = app.add_subcommand("sweep",
                               "train a grid of designs, shapes, learning rates and seeds; write a report");
  s->add_option("settings", sweep.settings, settings_help);
  s->add_option("--config", sweep.config, "TOML file");
  s->add_option("--out", sweep.out, "folder of the runs and the report")->required();
  s->add_flag("--dry-run", sweep.dry_run, "print the table of runs and stop");
  s->add_flag("--force", sweep.force, "start anew the runs that were told something else");
  add_device(s);

  s->footer(
      "keys of the grid, besides those of train: sweep.designs=pre_ln,hc sweep.shapes=4x64,8x48 "
      "sweep.lrs=1e-3,3e-3 sweep.seeds=0,1");

  EvalArgs eval;
  auto* e = app.add_subcommand("eval", "validation loss of a run or checkpoint");
  e->add_option("target", eval.target, "run folder or checkpoint")->required();
  e->add_option("settings", eval.settings,
                "settings key=value of data.*, run.*, train.seq_len, train.micro_batch");
  e->add_option("--data", eval.data,
                "evaluate all of this file or folder instead of the run's held-out part");
  e->add_flag("--json", eval.json, "one JSON object");
  add_device(e);

  AnalyzeArgs analyze;
  auto* y = app.add_subcommand("analyze", "effective depth of a trained model: ten analyses, into its folder");
  y->add_option("target", analyze.target, "run folder or checkpoint")->required();
  y->add_option("settings", analyze.settings, "settings key=value of data.*, run.*");
  y->add_option("--only", analyze.only, "e.g. angular,causal")->delimiter(',');
  y->add_option("--out", analyze.out, "folder of the tables; by default analysis/ beside the checkpoint");
  y->add_option("--windows", analyze.windows, "windows of text; by default each analysis's published number")->check(CLI::PositiveNumber);
  y->add_option("--seq-len", analyze.seq_len, "their tokens; by default as published, no longer than in training")->check(CLI::Range(2, 1 << 20));
  y->add_option("--rows", analyze.rows, "windows of one forward pass")->check(CLI::PositiveNumber);
  y->add_option("--seed", analyze.seed, "of where the windows lie");
  y->add_flag("--embedding-runs", analyze.embedding_runs, "AttnRes without block 0: the embedding is the running sum, as in the released probe");
  y->add_flag("--force", analyze.force, "do again what is done");
  std::string kinds = "analyses:\n";
  for (const auto& kind : analysis_kinds()) kinds += fmt::format("  {:<12} {}\n", kind.name, kind.meaning);
  y->footer(kinds);

  ReportArgs report;
  auto* r = app.add_subcommand("report", "one page over any runs: losses, effective depth, how to do it again");
  r->add_option("runs", report.runs, "run folders, or folders that hold some")->required();
  r->add_option("--out", report.out, "folder of the report, by default report");
  r->add_flag("--published", report.published, "also the 400M losses that the paper reports, marked as such");

  TeachArgs teach;
  auto* w = app.add_subcommand("teach", "a page with the designs side by side: equation, wiring, code, cost, and what trained models look like");
  w->add_option("runs", teach.runs, "run folders, or folders that hold some");
  w->add_option("--sources", teach.sources, "folder of the designs' headers")->capture_default_str();
  w->add_option("--out", teach.out, "the page, by default designs.html");

  TaskArgs task;
  auto* k = app.add_subcommand("task", "train a grid of models on k-hop induction, a task of known depth");
  k->add_option("settings", task.settings, settings_help);
  k->add_option("--config", task.config, "TOML file");
  k->add_option("--out", task.out, "folder of the results")->required();
  k->add_option("--hops", task.task.max_hops, "most hops of a sample")->check(CLI::Range(0, 1000));
  k->add_option("--letters", task.task.letters)->check(CLI::Range(2, 1000));
  k->add_option("--seq-len", task.task.seq, "tokens of a sample, the number of hops among them")->check(CLI::Range(3, 1 << 16));
  k->add_option("--tests", task.tests, "fresh samples for each number of hops")->check(CLI::PositiveNumber);
  k->footer("grid: sweep.designs sweep.shapes sweep.lrs sweep.seeds; also train.steps train.global_batch_tokens model.n_heads");

  InfoArgs info;
  auto* i = app.add_subcommand("info", "about this program, or about a run or checkpoint");
  i->add_option("target", info.target, "run folder or checkpoint");
  i->add_flag("--json", info.json, "one JSON object");

  std::vector<std::string> cases;
  auto* p = app.add_subcommand("parity", "compare the model with golden cases in float64");
  p->add_option("cases", cases, "folders with case.json and tensors.safetensors")->required();

  bool analysis = false;
  p->add_flag("--analysis", analysis, "compare the analyses, of the cases that have an analysis.json");
  AccountArgs account;
  auto* a = app.add_subcommand("account", "parameters, FLOPs, bytes, memory and time of designs and shapes, without training");
  a->add_option("--design", account.designs, "one or more, e.g. pre_ln,hc, or all; by default pre_ln, with --tier all")->delimiter(',');
  a->add_option("--layers", account.layers, "blocks L");
  a->add_option("--d-model", account.d_model, "width d");
  a->add_option("--ffn", account.ffn, "0: 8 d / 3, rounded up to a multiple of 16");
  a->add_option("--heads", account.heads);
  a->add_option("--kv-heads", account.kv_heads, "0: as many as heads");
  a->add_option("--vocab", account.vocab);
  a->add_option("--seq-len", account.seq_len, "tokens T of a sequence");
  a->add_option("--batch", account.batch, "sequences of a training step, for the memory");
  a->add_option("--option", account.options, "name=value, an option of the designs, e.g. n_streams=2");
  a->add_option("--tier", account.tier, "a table over the published shapes: 200m, 300m, 400m, 500m, 1600m, 300m_backbone");
  a->add_option("--device", account.device, "estimate the time on h200, a100, laptop or this machine (measured)");
  a->add_option("--tokens", account.tokens, "of a whole run, for the estimate");
  a->add_option("--price", account.price, "of a device hour, for the estimate");
  a->add_option("--threads", account.threads, "of the CPU the memory is counted for; each has scratch")->check(CLI::PositiveNumber);
  a->add_option("--svg", account.svg, "write pictures into this folder");
  a->add_flag("--bf16", account.bf16, "memory with products of bfloat16 inputs");
  a->add_flag("--json", account.json, "one JSON object, or a list of them");
  a->add_flag("--csv", account.csv, "a row a design and shape");

  ShapesArgs shapes;
  auto* h = app.add_subcommand("shapes", "the shapes that a budget of parameters allows, along the aspect ratio");
  h->add_option("--budget", shapes.budget, "parameters, e.g. 400M")->required();
  h->add_option("--tolerance", shapes.tolerance, "of the budget, in %")->capture_default_str();
  h->add_option("--vocab", shapes.vocab, "tokens of the tokenizer")->capture_default_str();
  h->add_option("--heads", shapes.heads, "0: by --head-size")->capture_default_str();
  h->add_option("--head-size", shapes.head_size, "0: any even one");
  h->add_option("--heads-per-kv", shapes.heads_per_kv, "query heads that share keys and values")->capture_default_str();
  h->add_option("--ffn-factor", shapes.ffn_factor, "FFN width over d, before rounding up to a multiple of 16")->capture_default_str();
  h->add_option("--min-aspect", shapes.min_aspect, "smallest d / L")->capture_default_str();
  h->add_option("--max-aspect", shapes.max_aspect, "largest d / L")->capture_default_str();
  h->add_option("--layers", shapes.layers, "only these depths")->delimiter(',');
  h->add_option("--design", shapes.design, "whose parameters are shown; by default pre_ln");
  h->add_flag("--count-design", shapes.count_design, "the design's own parameters count against the budget");
  h->add_flag("--backbone", shapes.backbone, "the budget is of the backbone, without embedding and head");
  h->add_flag("--nearest", shapes.nearest, "of each depth only the width nearest to the budget");
  h->add_flag("--json", shapes.json, "one JSON object");

  BenchOptions o;
  auto* b = app.add_subcommand("bench",
                               "measure products, row programs, whole steps and memory against this machine's bounds");
  b->add_option("what", o.what, "gemm, rows, step, memory, or account: predicted and measured memory and work")
      ->check(CLI::IsMember({"gemm", "rows", "step", "account", "memory"}));
  b->add_option("--designs", o.designs, "e.g. pre_ln,hc")->delimiter(',');
  b->add_option("--d-model", o.d_model)->check(CLI::PositiveNumber);
  b->add_option("--layers", o.n_layers)->check(CLI::PositiveNumber);
  b->add_option("--heads", o.n_heads, "0: heads of 64 channels, or 32 below d = 256")
      ->check(CLI::NonNegativeNumber);
  b->add_option("--seq-len", o.seq_len)->check(CLI::PositiveNumber);
  b->add_option("--batch", o.batch)->check(CLI::PositiveNumber);
  b->add_option("--vocab", o.vocab_size)->check(CLI::PositiveNumber);
  b->add_option("--threads", o.threads, "0: as many as the machine has")->check(CLI::NonNegativeNumber);
  b->add_option("--repeats", o.repeats)->check(CLI::PositiveNumber);
  b->add_option("--precision", o.precision, "fp32, bf16 or bf16_pure, as train.precision")
      ->check(CLI::IsMember({"fp32", "bf16", "bf16_pure"}));
  b->add_flag("--recompute", o.recompute, "a block's inner values are made again in the backward pass");
  b->add_flag("--json", o.json);

  if (argc > 1 && argv[1][0] != '-') {
    std::vector<std::string> commands;
    for (const auto* sub : app.get_subcommands({})) commands.push_back(sub->get_name());
    if (std::find(commands.begin(), commands.end(), argv[1]) == commands.end())
      return complain(
          2, fmt::format("there is no command {}; the nearest is {}", argv[1], nearest(argv[1], commands)));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // --help, --version
    return complain(2, std::string(problem.what()) + "; --help tells more");
  }
  if (p->parsed()) return parity(cases, analysis);
  if (b->parsed()) {
    if (o.what == "account" && b->count("--designs") == 0) o.designs.clear();  // all of them
    return bench(o);
  }
  if (!device.empty())
    for (auto* settings : {&train.settings, &sweep.settings, &eval.settings}) settings->push_back("run.device=" + device);
  const Engine engine(add, processes);
  if (t->parsed()) return train_command(engine, train);
  if (s->parsed()) return sweep_command(engine, sweep);
  if (e->parsed()) return eval_command(engine, eval);
  if (y->parsed()) return analyze_command(engine, analyze);
  if (r->parsed()) return report_command(engine, report);
  if (w->parsed()) return teach_command(engine, teach);
  if (k->parsed()) return task_command(engine, task);
  if (a->parsed()) return account_command(engine, account);
  if (h->parsed()) return shapes_command(engine, shapes);
  return info_command(engine, info);
}

}  // namespace

namespace {
int led(int argc, char** argv, const AddDesigns& add, Processes& processes) {  // an error is one line and a code
  try {
    return dispatch(argc, argv, add, processes);
  } catch (const config_error& e) {
    return complain(2, e.what());
  } catch (const file_error& e) {
    return complain(3, e.what());
  } catch (const format_error& e) {
    return complain(3, e.what());
  } catch (const dtype_error& e) {
    return complain(3, e.what());
  } catch (const shape_error& e) {
    return complain(3, e.what());
  } catch (const numeric_error& e) {
    return complain(3, e.what());
  } catch (const interrupted&) {
    return complain(exit_interrupted, "interrupted");
  } catch (const std::bad_alloc&) {
    return complain(1, "out of memory");
  } catch (const std::exception& e) {
    return complain(1, e.what());
  }
}
}  // namespace

int run(int argc, char** argv, const AddDesigns& add) {
  std::unique_ptr<Processes> processes;
  try {
    processes = started_processes();
  } catch (const std::exception& e) {
    return complain(2, e.what());
  }
  if (processes->rank() > 0) return follow(Engine(add, *processes), *processes);
  const int code = led(argc, argv, add, *processes);
  end_followers(*processes);
  return code;
}

int run(std::vector<std::string> arguments, const AddDesigns& add) {
  arguments.insert(arguments.begin(), "depthbench");
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  return run(int(argv.size()), argv.data(), add);
}

}  // namespace depthbench::app
