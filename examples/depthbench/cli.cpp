// The command line. The only file that knows CLI11; errors become exit codes here.
#include <CLI/CLI.hpp>

#include "bench.hpp"
#include "commands.hpp"
#include "depthbench/core/error.hpp"
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

int dispatch(int argc, char** argv, const AddDesigns& add) {
  CLI::App app(
      "depthbench: how deep transformers carry the residual stream. Train, sweep, evaluate, compare.",
      "depthbench");
  app.require_subcommand(1);
  app.set_version_flag("--version", "depthbench " + version());

  TrainArgs train;
  auto* t = app.add_subcommand("train", "train one model into a run folder");
  t->add_option("settings", train.settings, settings_help);
  t->add_option("--config", train.config, "TOML file");
  t->add_option("--out", train.out, "run folder; by default runs/DESIGN_LxD_lrRATE_seedSEED");
  t->add_flag("--dry-run", train.dry_run, "print the plan and stop");
  t->add_flag("--resume", train.resume, "go on from the folder's checkpoint");
  t->add_flag("--force", train.force, "start anew in a folder that holds a run");

  t->footer("keys and their defaults, as in a TOML file:\n\n" + to_toml({}));

  SweepArgs sweep;
  auto* s = app.add_subcommand("sweep",
                               "train a grid of designs, shapes, learning rates and seeds; write a report");
  s->add_option("settings", sweep.settings, settings_help);
  s->add_option("--config", sweep.config, "TOML file");
  s->add_option("--out", sweep.out, "folder of the runs and the report")->required();
  s->add_flag("--dry-run", sweep.dry_run, "print the table of runs and stop");
  s->add_flag("--force", sweep.force, "start anew the runs that were told something else");

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

  InfoArgs info;
  auto* i = app.add_subcommand("info", "about this program, or about a run or checkpoint");
  i->add_option("target", info.target, "run folder or checkpoint");
  i->add_flag("--json", info.json, "one JSON object");

  std::vector<std::string> cases;
  auto* p = app.add_subcommand("parity", "compare the model with golden cases in float64");
  p->add_option("cases", cases, "folders with case.json and tensors.safetensors")->required();

  BenchOptions o;
  auto* b = app.add_subcommand("bench",
                               "measure products, row programs or whole steps against this machine's bounds, or memory");
  b->add_option("what", o.what, "gemm, rows, step or memory")->check(CLI::IsMember({"gemm", "rows", "step", "memory"}));
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
  if (p->parsed()) return parity(cases);
  if (b->parsed()) return bench(o);
  const Engine engine(add);
  if (t->parsed()) return train_command(engine, train);
  if (s->parsed()) return sweep_command(engine, sweep);
  if (e->parsed()) return eval_command(engine, eval);
  return info_command(engine, info);
}

}  // namespace

int run(int argc, char** argv, const AddDesigns& add) {
  try {
    return dispatch(argc, argv, add);
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

int run(std::vector<std::string> arguments, const AddDesigns& add) {
  arguments.insert(arguments.begin(), "depthbench");
  std::vector<char*> argv;
  for (auto& a : arguments) argv.push_back(a.data());
  return run(int(argv.size()), argv.data(), add);
}

}  // namespace depthbench::app
