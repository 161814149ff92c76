#include "sweep_grid.hpp"

#include <set>

#include "plan.hpp"

namespace depthbench::app {

double GridRun::flops() const { return flops_per_token(config, parameters) * double(tokens()); }

std::vector<GridRun> grid_of(const Engine& engine, const RunConfig& config, std::int64_t data_vocab) {
  SweepConfig s = config.sweep;
  if (s.designs.empty()) s.designs = {config.design};
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
