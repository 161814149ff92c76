#include "engine.hpp"

#include <charconv>
#include <thread>

#include "engine_cuda.hpp"
#include "engine_model.hpp"
#include "instances.hpp"

namespace depthbench::app {

Engine::Engine(const AddDesigns& add) : designs_(std::make_unique<Designs<Cpu, float>>()) {
  if (add) add(*designs_);
}
Engine::~Engine() = default;

std::vector<std::string> Engine::designs() const { return designs_->list(); }

PartCounts Engine::count(const RunConfig& c) const {
  cuda_ordinal(c.device);  // every plan comes by here: a device that is not there is said before anything starts
  Cpu cpu(1);
  Transformer<Cpu, float> model(cpu, c.model, make_design(*designs_, c));
  const auto& p = model.parameters();
  return {p.numel(Part::embedding), p.numel(Part::backbone), p.numel(Part::norm), p.numel(Part::residual),
          p.numel(Part::head)};
}

std::unique_ptr<Training> Engine::train(const RunConfig& c, const Data& data) const {
  if (const auto ordinal = cuda_ordinal(c.device)) return train_on_cuda(*ordinal, c, data);
  return std::make_unique<Trained<Cpu>>([&] { return Cpu(c.threads); }, *designs_, c, data);
}

std::unique_ptr<Model> Engine::open(const RunConfig& c, const std::string& checkpoint) const {
  if (const auto ordinal = cuda_ordinal(c.device)) return open_on_cuda(*ordinal, c, checkpoint);
  return std::make_unique<Held<Cpu>>([&] { return Cpu(c.threads); }, *designs_, c, checkpoint);
}

std::optional<int> cuda_ordinal(const std::string& device) {
  if (device == "cpu") return std::nullopt;
  int ordinal = -1;
  const char* end = device.data() + device.size();
  if (!device.starts_with("cuda:") || std::from_chars(device.data() + 5, end, ordinal).ptr != end || ordinal < 0)
    fail<config_error>("run.device is {}, needs cpu or cuda:0, cuda:1, ...", device);
  if (!cuda_built())
    fail<config_error>("run.device is {}: this program was built without CUDA (configure with -DDEPTHBENCH_CUDA=ON)", device);
  return ordinal;
}

std::string Engine::gemm_name() { return Cpu::gemm_name(); }
int Engine::hardware_threads() { return std::max(1, int(std::thread::hardware_concurrency())); }
std::string Engine::vector_width() {
#if defined(__AVX512F__)
  const char* set = " (AVX-512)";
#elif defined(__AVX2__)
  const char* set = " (AVX2)";
#else
  const char* set = "";
#endif
  return fmt::format("{}-bit vectors{}", 32 * cpu_pack<float>::width, set);
}

}  // namespace depthbench::app
