#include "sweep_grid.hpp"

#include <set>

#include "depthbench/account/shapes.hpp"
#include "plan.hpp"

namespace depthbench::app {

double GridRun::flops() const { return flops_per_token(config, parameters) * double(tokens()); }

namespace {

// The nearest width of every depth asked for, as `depthbench shapes` finds it: Pre-LN's parameters count.
std::vector<ShapeConfig> shapes_of_budget(const Engine& engine, const RunConfig& c, int vocab) {
  if (!c.sweep.shapes.empty())
    fail<config_error>("sweep: sweep.shapes and sweep.budget are both given, needs one of them");
  if (c.sweep.layers.empty()) fail<config_error>("sweep: sweep.budget needs sweep.layers, e.g. 4,8,16");
  ShapeQuery q{.budget = c.sweep.budget,
               .vocab_size = std::max(vocab, c.model.vocab_size),
               .heads = c.model.n_heads,
               .head_size = c.model.n_heads > 0 ? 0 : 32};
  q.heads_per_kv =
      c.model.n_heads > 0 && c.model.n_kv_heads > 0 ? std::max(1, c.model.n_heads / c.model.n_kv_heads) : 1;
  q.min_aspect = 1;
  q.max_aspect = 1024;
  q.tolerance = 0.25;  // widths are coarse in small models; the table of runs shows what each has
  std::vector<ShapeConfig> shapes;
  for (const int L : c.sweep.layers) {
    q.layers = {L};
    for (const auto& s : fit_shapes(
             q, [&](const ModelConfig& m) { return engine.count_parameters("pre_ln", {}, m).total(); }))
      if (s.nearest)
        shapes.push_back({L, s.model.d_model, s.model.n_heads, s.model.n_kv_heads, s.model.ffn_hidden});
  }
  return shapes;
}

}  // namespace

std::vector<GridRun> grid_of(const Engine& engine, const RunConfig& config, std::int64_t data_vocab) {
  SweepConfig s = config.sweep;
  if (s.designs.empty()) s.designs = {config.design};
  if (s.budget != 0) s.shapes = shapes_of_budget(engine, config, int(data_vocab));
  if (s.budget == 0 && !s.layers.empty())
    fail<config_error>("sweep: sweep.layers needs sweep.budget; depths and widths are sweep.shapes");
  if (s.shapes.empty()) s.shapes = {{config.model.n_layers, config.model.d_model}};
  if (s.lrs.empty()) s.lrs = {config.train.lr};
  if (s.seeds.empty()) s.seeds = {config.train.seed};
  std::vector<GridRun> grid;
  std::set<std::string> names;
  for (const auto seed : s.seeds)
    for (const auto& shape : s.shapes)
      for (const double lr : s.lrs)
        for (const auto& design : s.designs) {
          GridRun run{{}, config, {}, 0};
          RunConfig& c = run.config;
          c.sweep = {};
          c.design = design;
          c.model.n_layers = shape.n_layers;
          c.model.d_model = shape.d_model;
          if (shape.n_heads) c.model.n_heads = shape.n_heads;
          if (shape.n_kv_heads) c.model.n_kv_heads = shape.n_kv_heads;
          if (shape.ffn_hidden) c.model.ffn_hidden = shape.ffn_hidden;
          c.train.lr = lr;
          c.train.seed = seed;
          c.options = options_of(c, engine.designs());
          resolve(c, data_vocab);
          run.name = run_name(c);
          run.parameters = engine.count(c);
          run.steps = total_steps(c.train, run.parameters.total());
          if (!names.insert(run.name).second)
            fail<config_error>(
                "sweep: two runs are named {}; a design, shape, rate or seed stands twice in the grid",
                run.name);
          grid.push_back(std::move(run));
        }
  return grid;
}

}  // namespace depthbench::app
