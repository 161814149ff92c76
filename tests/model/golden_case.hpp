// One golden case (tests/golden/README.md), and a model that holds its parameters.
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/io/safetensors.hpp"
#include "depthbench/model/transformer.hpp"
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/adamw.hpp"

namespace depthbench_test {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(DEPTHBENCH_SOURCE_DIR) / "tests/golden";
}
inline nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in);
}
// Every case of a design that there is.
template <class R> std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  for (const auto& folder : std::filesystem::directory_iterator(golden_folder())) {
    if (!folder.is_directory()) continue;
    const auto json = read_json(folder.path() / "case.json");
    if (depthbench::Designs<depthbench::Cpu, R>().has(json["design"]))
      names.push_back(folder.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <class R> struct GoldenCase {
  using Model = depthbench::Transformer<depthbench::Cpu, R>;

  std::string name;
  nlohmann::json json;
  depthbench::SafeTensors file;
  std::vector<std::int32_t> tokens, targets;
  int batch;
  double labels = 0;
  bool compact;
  std::unique_ptr<Model> model;

  GoldenCase(depthbench::Cpu& cpu, const std::string& name_)
      : name(name_),
        json(read_json(golden_folder() / name / "case.json")),
        file(golden_folder() / name / "tensors.safetensors"),
        tokens(indices("tokens")),
        targets(indices("targets")),
        batch(json["batch"]),
        compact(json["profile"] == "compact") {
    for (const auto t : targets) labels += t != depthbench::ignored_target;
    depthbench::ModelConfig c;
    c.vocab_size = json["vocab_size"];
    c.d_model = json["d_model"];
    c.n_layers = json["n_layers"];
    c.n_heads = json["n_heads"];
    c.n_kv_heads = json["n_kv_heads"];
    c.ffn_hidden = json["ffn_hidden"];
    c.rope_theta = json["rope_theta"];
    c.norm_eps = json["norm_eps"];
    depthbench::DesignOptions options;
    for (const auto& [key, value] : json["design_options"].items())
      options.set(key, value.template get<double>());
    model = std::make_unique<Model>(cpu, c,
                                    depthbench::Designs<depthbench::Cpu, R>().make(json["design"], options));
    model->initialize(1);
    load();
  }
  void load() {  // the case's initial parameters
    for (auto& p : model->parameters().list()) {
      const auto v = file.template read_as<double>("param." + p.name);
      for (std::size_t i = 0; i < v.size(); ++i) p.value[i] = R(v[i]);
    }
  }
  depthbench::AdamwConfig adamw() const {
    const auto& o = json["adamw"];
    return {o["betas"][0], o["betas"][1], o["eps"], o["weight_decay"], o["clip"]};
  }
  depthbench::Var<depthbench::Cpu, R> loss(depthbench::Tape<depthbench::Cpu, R>& tape,
                                           depthbench::Activations a = depthbench::Activations::keep) {
    return model->loss(tape, tokens, targets, batch, labels, a);
  }
  std::vector<double> needs(const std::string& tensor) const { return file.template read_as<double>(tensor); }
  bool near_zero(const std::string& parameter) const {
    return json.contains("near_zero_grads") && json["near_zero_grads"].contains(parameter);
  }

 private:
  std::vector<std::int32_t> indices(const char* tensor) const {
    const auto wide = file.template read_as<std::int64_t>(tensor);
    return {wide.begin(), wide.end()};
  }
};

}  // namespace depthbench_test
