// The runs of a sweep: designs x shapes x learning rates x seeds.
#pragma once
#include <string>
#include <vector>

#include "engine.hpp"

namespace depthbench::app {

struct GridRun {
  std::string name;  // of its folder under runs/
  RunConfig config;  // resolved
  PartCounts parameters;
  std::int64_t steps = 0;

  std::int64_t tokens() const { return steps * config.train.batch_tokens; }
  double flops() const;  // of the whole run
};

// What the sweep section leaves out is taken from the other keys: one design, one shape, one rate, one seed.
//   throws config_error: an unknown design, a shape no model can have, two runs of one name
std::vector<GridRun> grid_of(const Engine& engine, const RunConfig& config, std::int64_t data_vocab);

}  // namespace depthbench::app
