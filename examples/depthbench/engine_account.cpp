#include "depthbench/account/count.hpp"
#include "engine.hpp"
#include "instances.hpp"

namespace depthbench::app {
namespace {

std::unique_ptr<Residual<ShapeOnly, float>> make_counted(const Designs<ShapeOnly, float>& counted,
                                                         const Designs<Cpu, float>& trained,
                                                         const std::string& design, const Options& options) {
  if (!counted.has(design)) {
    if (trained.has(design))
      fail<config_error>(
          "{} was added for Designs<Cpu, float>& alone; add it by a callable of auto& to have it counted",
          design);
    fail<config_error>("there is no design {}; the nearest is {}", design, nearest(design, counted.list()));
  }
  DesignOptions o;
  for (const auto& [name, value] : options) o.set(name, value);
  return counted.make(design, o);
}

}  // namespace

std::vector<std::string> Engine::counted_designs() const { return counted_->list(); }

Cost Engine::account(const std::string& design, const Options& options, const ModelConfig& model,
                     const CountOptions& how) const {
  return depthbench::count(model, make_counted(*counted_, *designs_, design, options), how);
}

ParameterCounts Engine::count_parameters(const std::string& design, const Options& options,
                                         const ModelConfig& model) const {
  return depthbench::count_parameters(model, make_counted(*counted_, *designs_, design, options));
}

}  // namespace depthbench::app
