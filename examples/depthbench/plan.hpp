// What a run will do, in words: the banner of `train`, and all that `--dry-run` prints.
#pragma once
#include <string>

#include "data.hpp"
#include "engine.hpp"

namespace depthbench::app {

// "hc_4x128_lr0.002_seed0": the folder of a run
std::string run_name(const RunConfig& config);
std::string plan_text(const Engine& engine, const RunConfig& config, const Data& data,
                      const std::string& folder);
// FLOPs of one trained token: 6 a parameter of the products, and attention
double flops_per_token(const RunConfig& config, const PartCounts& counts);

}  // namespace depthbench::app
