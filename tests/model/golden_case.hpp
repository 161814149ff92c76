// One golden case (tests/golden/README.md), and a model on any device that holds its parameters.
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "depthbench/backend/cpu.hpp"
#include "depthbench/io/json.hpp"
#include "depthbench/io/safetensors.hpp"
#include "depthbench/model/transformer.hpp"
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/adamw.hpp"

namespace depthbench_test {

inline std::filesystem::path golden_folder() { return std::filesystem::path(DEPTHBENCH_SOURCE_DIR) / "tests/golden"; }
// Every case that there is.
inline std::vector<std::string> golden_cases() {
  std::vector<std::string> names;
  for (const auto& folder : std::filesystem::directory_iterator(golden_folder()))
    if (folder.is_directory()) names.push_back(folder.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// case.json, as far as tests need it.
struct GoldenText {
  std::string design;
  depthbench::DesignOptions options;
  depthbench::ModelConfig model;
  depthbench::AdamwConfig adamw;
  int batch = 0;
  bool compact = false;
  double lr = 0;
  std::int64_t param_count = 0;
  std::vector<double> losses, grad_norms;  // of three steps
  std::set<std::string> no_decay, near_zero;

  explicit GoldenText(const std::filesystem::path& path) {
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    depthbench::JsonReader json(text, path.string());
    const auto number = [&](auto& to) { to = static_cast<std::remove_reference_t<decltype(to)>>(json.number()); };
    const auto numbers = [&](std::vector<double>& to) { json.array([&] { to.push_back(json.number()); }); };
    std::vector<double> betas;
    json.object([&](const std::string& key) {
      if (key == "design") design = json.string();
      else if (key == "vocab_size") number(model.vocab_size);
      else if (key == "d_model") number(model.d_model);
      else if (key == "n_layers") number(model.n_layers);
      else if (key == "n_heads") number(model.n_heads);
      else if (key == "n_kv_heads") number(model.n_kv_heads);
      else if (key == "ffn_hidden") number(model.ffn_hidden);
      else if (key == "rope_theta") number(model.rope_theta);
      else if (key == "norm_eps") number(model.norm_eps);
      else if (key == "batch") number(batch);
      else if (key == "param_count") number(param_count);
      else if (key == "profile") compact = json.string() == "compact";
      else if (key == "design_options") json.object([&](const std::string& option) { options.set(option, json.number()); });
      else if (key == "near_zero_grads") json.object([&](const std::string& name) { near_zero.insert(name), json.skip(); });
      else if (key == "adamw") json.object([&](const std::string& of) {
        if (of == "lr") number(lr);
        else if (of == "betas") numbers(betas);
        else if (of == "eps") number(adamw.eps);
        else if (of == "weight_decay") number(adamw.weight_decay);
        else if (of == "clip") number(adamw.clip);
        else if (of == "losses") numbers(losses);
        else if (of == "grad_norms") numbers(grad_norms);
        else if (of == "no_decay") json.array([&] { no_decay.insert(json.string()); });
        else json.skip();
      });
      else json.skip();
    });
    adamw.beta1 = betas.at(0);
    adamw.beta2 = betas.at(1);
  }
};

template <class R, class Device = depthbench::Cpu> struct GoldenCase : GoldenText {
  using Model = depthbench::Transformer<Device, R>;

  std::string name;
  depthbench::SafeTensors file;
  std::vector<std::int32_t> tokens, targets;
  double labels = 0;
  std::unique_ptr<Model> model;

  GoldenCase(Device& device, const std::string& name_)
      : GoldenText(golden_folder() / name_ / "case.json"),
        name(name_),
        file(golden_folder() / name_ / "tensors.safetensors"),
        tokens(indices("tokens")),
        targets(indices("targets")) {
    for (const auto t : targets) labels += t != depthbench::ignored_target;
    model = std::make_unique<Model>(device, GoldenText::model, depthbench::Designs<Device, R>().make(design, options));
    model->initialize(1);
    load();
  }
  void load() {  // the case's initial parameters
    for (auto& p : model->parameters().list()) {
      const auto v = file.template read_as<double>("param." + p.name);
      const std::vector<R> here(v.begin(), v.end());
      model->parameters().device().upload(p.value, here.data(), here.size());
    }
  }
  depthbench::Var<Device, R> loss(depthbench::Tape<Device, R>& tape, depthbench::Activations a = depthbench::Activations::keep) {
    return model->loss(tape, tokens, targets, batch, labels, a);
  }
  std::vector<double> needs(const std::string& tensor) const { return file.template read_as<double>(tensor); }

 private:
  std::vector<std::int32_t> indices(const char* tensor) const {
    const auto wide = file.template read_as<std::int64_t>(tensor);
    return {wide.begin(), wide.end()};
  }
};

}  // namespace depthbench_test
