// depthbench info: about this program and machine, or about a run or checkpoint.
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "depthbench/io/safetensors.hpp"
#include "engine_cuda.hpp"
#include "saved_run.hpp"
#include "words.hpp"

namespace depthbench::app {
namespace {

using Json = nlohmann::ordered_json;

// What the designs ask their DesignOptions for; tests/app/info_test.cpp tries each.
struct Option {
  const char *design, *name, *meaning;
};
constexpr Option options[] = {{"hc", "n_streams", "streams, 1 to 8; 4 unless given"},
                              {"mhc", "n_streams", "streams, 1 to 8; 4 unless given"},
                              {"mhc", "sinkhorn_iters", "iterations of the projection; 20 unless given"},
                              {"block_attn_res", "block_size", "sublayers of a group"}};

int about_program(const Engine& engine, bool json) {
  Json designs = Json::object();
  for (const auto& name : engine.designs()) designs[name] = Json::object();
  for (const auto& o : options)
    if (designs.contains(o.design)) designs[o.design][o.name] = o.meaning;
  const Json j{{"version", version()},
               {"compiler", __VERSION__},
               {"simd", Engine::vector_width()},
               {"gemm", Engine::gemm_name()},
               {"threads", Engine::hardware_threads()},
               {"cuda", cuda_found()},
               {"mpi", mpi_built()},
               {"designs", designs}};
  if (json) {
    fmt::print("{}\n", j.dump());
    return 0;
  }
  fmt::print("depthbench  {}\ncompiler    {}\nvectors     {}\nproducts    {}\nthreads     {}\ncuda        {}\nmpi         {}\ndesigns\n",
             version(), __VERSION__, Engine::vector_width(), Engine::gemm_name(), Engine::hardware_threads(), cuda_found(), mpi_built());
  for (const auto& [name, options] : designs.items()) {
    fmt::print("  {}\n", name);
    for (const auto& [option, meaning] : options.items())
      fmt::print("    residual.{:<12} {}\n", option, meaning.get<std::string>());
  }
  return 0;
}

int about_checkpoint(const std::string& target, bool json) {
  const SavedRun saved = find_saved_run(target);
  const SafeTensors file(saved.checkpoint);
  Json tensors = Json::array();
  std::int64_t parameters = 0, bytes = 0;
  for (const auto& name : file.names()) {
    const TensorEntry& t = file.at(name);
    bytes += std::int64_t(t.bytes.size());
    if (name.starts_with("optim.")) continue;
    parameters += t.numel();
    tensors.push_back({{"name", name}, {"dtype", name_of(t.dtype)}, {"shape", t.shape}});
  }
  if (json) {
    fmt::print("{}\n", Json{{"checkpoint", saved.checkpoint.string()},
                            {"step", saved.step},
                            {"parameters", parameters},
                            {"bytes", bytes},
                            {"config", to_toml(saved.config)},
                            {"tensors", tensors}}
                           .dump());
    return 0;
  }
  fmt::print("{}\nstep {}, {} parameters in {} tensors, {}{}\n\n", saved.checkpoint.string(), saved.step,
             parameters, tensors.size(), bytes_text(double(bytes)),
             file.names().size() > tensors.size() ? " with the optimizer's moments" : "");
  for (const auto& t : tensors)
    fmt::print("{:<60} {:<5} ({})\n", t["name"].get<std::string>(), t["dtype"].get<std::string>(),
               fmt::join(t["shape"].get<std::vector<std::int64_t>>(), ", "));
  fmt::print("\n{}", to_toml(saved.config));
  return 0;
}

}  // namespace

int info_command(const Engine& engine, const InfoArgs& args) {
  return args.target.empty() ? about_program(engine, args.json) : about_checkpoint(args.target, args.json);
}

}  // namespace depthbench::app
