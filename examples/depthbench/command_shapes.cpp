// depthbench shapes: the shapes that a budget of parameters allows.
#include <cmath>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "depthbench/account/published_shapes.hpp"
#include "depthbench/account/shapes.hpp"

namespace depthbench::app {

double amount(const std::string& what, const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(std::min(used, text.size()));
  const double factor = unit.empty()                 ? 1
                        : unit == "k" || unit == "K" ? 1e3
                        : unit == "M"                ? 1e6
                        : unit == "B" || unit == "G" ? 1e9
                                                     : 0;
  if (used == 0 || factor == 0 || !std::isfinite(value))
    fail<config_error>("{} is '{}', needs a number, e.g. 400M, 1.6B or 3e6", what, text);
  return value * factor;
}

int shapes_command(const Engine& engine, const ShapesArgs& args) {
  ShapeQuery q;
  q.budget = amount("shapes: --budget", args.budget);
  q.tolerance = args.tolerance / 100;
  q.vocab_size = args.vocab;
  q.heads = args.heads;
  q.head_size = args.head_size;
  q.heads_per_kv = args.heads_per_kv;
  q.ffn_factor = args.ffn_factor;
  q.min_aspect = args.min_aspect;
  q.max_aspect = args.max_aspect;
  q.layers = args.layers;
  const std::string design = args.design.empty() ? "pre_ln" : args.design;
  const auto counted = [&](const ModelConfig& c) {
    return engine.count_parameters(args.count_design ? design : "pre_ln", {}, c);
  };
  const auto shapes = fit_shapes(q, [&](const ModelConfig& c) {
    const ParameterCounts p = counted(c);
    return args.backbone ? p.backbone + (args.count_design ? p.residual : 0) : p.total();
  });
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (const FittedShape& s : shapes) {
    if (args.nearest && !s.nearest) continue;
    const ModelConfig& c = s.model;
    const ParameterCounts p = engine.count_parameters(design, {}, c);
    const double off = 100 * (double(s.parameters) / q.budget - 1);
    list.push_back({{"n_layers", c.n_layers},
                    {"d_model", c.d_model},
                    {"ffn_hidden", c.ffn_hidden},
                    {"n_heads", c.n_heads},
                    {"n_kv_heads", c.n_kv_heads},
                    {"head_dim", c.head_dim()},
                    {"aspect_ratio", s.aspect()},
                    {"counted_parameters", s.parameters},
                    {"off_percent", off},
                    {"nearest", s.nearest},
                    {"published", is_published(c)},
                    {"parameters",
                     {{"total", p.total()},
                      {"embedding", p.embedding},
                      {"backbone", p.backbone},
                      {"residual", p.residual},
                      {"final_norm", p.final_norm},
                      {"head", p.head}}}});
    text += fmt::format("{:>4}{:>7}{:>8.2f}{:>7}{:>7}{:>6}{:>10.2f}{:>9.2f}{:>12.2f}{:>+9.2f}   {}{}\n",
                        c.n_layers, c.d_model, s.aspect(), c.ffn_hidden, c.n_heads, c.head_dim(),
                        double(p.backbone) * 1e-6, double(p.residual) * 1e-6, double(p.total()) * 1e-6, off,
                        s.nearest ? "nearest" : "       ", is_published(c) ? " published" : "");
  }
  if (args.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"budget", q.budget},
                                              {"tolerance", q.tolerance},
                                              {"counts", args.backbone ? "backbone" : "total"},
                                              {"design", design},
                                              {"design_counted", args.count_design},
                                              {"vocab_size", q.vocab_size},
                                              {"shapes", list}}
                           .dump());
    return 0;
  }
  fmt::print("budget {:.4g} parameters of {}, within {:g} %, vocabulary {}; {}\n\n", q.budget,
             args.backbone ? "the backbone" : "the whole model", args.tolerance, q.vocab_size,
             args.count_design ? fmt::format("those of {} count", design) : "the design's own do not count");
  fmt::print(
      "{:>4}{:>7}{:>8}{:>7}{:>7}{:>6}{:>10}{:>9}{:>12}{:>9}\n{:>4}{:>7}{:>8}{:>7}{:>7}{:>6}{:>10}{:>9}{:>12}{"
      ":>9}\n{}",
      "L", "d", "d / L", "FFN", "heads", "size", "backbone", design == "pre_ln" ? "design" : design, "total",
      "off", "", "", "", "", "", "", "M", "M", "M", "%", text);
  fmt::print(
      "\nnearest: to the budget, of all widths of this depth. published: a shape of the DepthBench runs.\n");
  return 0;
}

}  // namespace depthbench::app
