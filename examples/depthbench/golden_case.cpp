#include "golden_case.hpp"

#include <fstream>

namespace depthbench::app {
namespace {

std::vector<std::int32_t> indices(const SafeTensors& file, const char* name) {
  const auto wide = file.read_as<std::int64_t>(name);
  return {wide.begin(), wide.end()};
}

ModelConfig config_of(const Json& c) {
  ModelConfig m;
  m.vocab_size = c.at("vocab_size");
  m.d_model = c.at("d_model");
  m.n_layers = c.at("n_layers");
  m.n_heads = c.at("n_heads");
  m.n_kv_heads = c.at("n_kv_heads");
  m.ffn_hidden = c.at("ffn_hidden");
  m.rope_theta = c.at("rope_theta");
  m.norm_eps = c.at("norm_eps");
  return m;
}

}  // namespace

Json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) fail<file_error>("parity: {} cannot be opened", path.string());
  try {
    return Json::parse(in);
  } catch (const std::exception& e) {
    fail<format_error>("parity: {} is not JSON: {}", path.string(), e.what());
  }
}

GoldenCase::GoldenCase(const std::filesystem::path& folder, Cpu& cpu)
    : json(read_json(folder / "case.json")), file(folder / "tensors.safetensors") {
  const Json& c = json;
  DesignOptions options;
  for (const auto& [name, value] : c.at("design_options").items()) options.set(name, value.get<double>());
  model = std::make_unique<Transformer<Cpu, double>>(cpu, config_of(c), Designs<Cpu, double>().make(c.at("design"), options));
  model->initialize(0);
  if (model->parameters().numel() != c.at("param_count").get<std::int64_t>())
    fail<format_error>("parity: the model has {} parameters, the case {}", model->parameters().numel(), c.at("param_count").get<std::int64_t>());
  for (auto& p : model->parameters().list()) {
    const auto values = file.read_as<double>("param." + p.name);
    if (values.size() != std::size_t(p.numel())) fail<format_error>("parity: param.{} has {} elements, needs {}", p.name, values.size(), p.numel());
    std::copy(values.begin(), values.end(), p.value);
  }
  tokens = indices(file, "tokens");
  targets = indices(file, "targets");
  batch = c.at("batch");
}

double relative_error(std::span<const double> has, std::span<const double> needs, double floor) {
  if (has.size() != needs.size()) return std::numeric_limits<double>::infinity();
  double largest = floor, error = 0;
  for (const double x : needs) largest = std::max(largest, std::fabs(x));
  for (std::size_t i = 0; i < has.size(); ++i) {
    const double e = std::fabs(has[i] - needs[i]);
    if (std::isnan(e)) return e;
    error = std::max(error, e);
  }
  return largest > 0 ? error / largest : error;
}

}  // namespace depthbench::app
