// Needs a GPU; scripts/gpu_check builds and runs it. JSON, one object a line.
//   bench copy | gemm | rows | step [DESIGN...]
//   step: by itself and as a captured CUDA graph. mfu: FLOPs of the model over what the GPU's sheet says of dense bf16 products, where
//   it is in `peak_flops_per_s`; share_of_gemm: over the rate of products measured here
//   Times are those of the fastest of several repeats, between events on the device's stream.
#include <cstdio>

#include "depthbench/backend/cuda.cuh"
#include "depthbench/kernel/hyper_connection.hpp"
#include "depthbench/op/hyper_connection.hpp"
#include "depthbench/op/mhc.hpp"
#include "depthbench/residual/designs.hpp"
#include "depthbench/train/trainer.hpp"

using namespace depthbench;

namespace {

class Event {
 public:
  Event() { cuda::check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  void record(CudaDevice& gpu) { cuda::check(cudaEventRecord(event_, gpu.stream()), "cudaEventRecord"); }
  double since_s(const Event& start) const {
    float ms = 0;
    cuda::check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    cuda::check(cudaEventElapsedTime(&ms, start.event_, event_), "cudaEventElapsedTime");
    return ms * 1e-3;
  }

 private:
  cudaEvent_t event_{};
};

template <class F> double fastest_s(CudaDevice& gpu, int repeats, F f) {
  f();
  double best = INFINITY;
  for (int i = 0; i < repeats; ++i) {
    Event start, end;
    start.record(gpu);
    f();
    end.record(gpu);
    best = std::min(best, end.since_s(start));
  }
  return best;
}

double copy_bytes_per_s(CudaDevice& gpu) {
  const std::size_t n = std::size_t{256} << 20;
  float *a = gpu.memory().acquire<float>(n), *b = gpu.memory().acquire<float>(n);
  gpu.zero(a, n);
  const double s = fastest_s(gpu, 10, [&] { gpu.copy(b, a, n); });
  gpu.memory().release(a, n * sizeof(float));
  gpu.memory().release(b, n * sizeof(float));
  return 2.0 * double(n) * sizeof(float) / s;
}

double gemm_flops_per_s(CudaDevice& gpu, std::int64_t d) {
  const std::int64_t m = 8192, n = 4 * d;
  float *a = gpu.memory().acquire<float>(m * d), *b = gpu.memory().acquire<float>(n * d), *c = gpu.memory().acquire<float>(m * n);
  gpu.zero(a, m * d);
  gpu.zero(b, n * d);
  const ProductInput<CudaDevice, float> a_in(gpu, a, std::size_t(m * d)), b_in(gpu, b, std::size_t(n * d));  // rounded beforehand, as in a step
  const double s = fastest_s(gpu, 10, [&] { gpu.gemm(GemmArgs<float>{Op::None, Op::Transpose, m, n, d, a_in.operand(), d, b_in.operand(), d}, 0.f, c, n); });
  gpu.memory().release(a, m * d * sizeof(float));
  gpu.memory().release(b, n * d * sizeof(float));
  gpu.memory().release(c, m * n * sizeof(float));
  return 2.0 * double(m) * double(n) * double(d) / s;
}
void gemm(CudaDevice& gpu) {
  struct { const char* name; Products products; bool tf32; } kinds[] = {{"fp32", Products::fp32, false}, {"tf32", Products::fp32, true}, {"bf16", Products::bf16, false}};
  for (const auto& kind : kinds) for (const std::int64_t d : {640, 1024}) {
    gpu.set_products(kind.products);
    gpu.allow_tf32(kind.tf32);
    fmt::print("{{\"bench\": \"gemm\", \"kind\": \"{}\", \"m\": 8192, \"n\": {}, \"k\": {}, \"flops_per_s\": {}}}\n", kind.name, 4 * d, d, gemm_flops_per_s(gpu, d));
  }
  gpu.set_products(Products::fp32);
  gpu.allow_tf32(false);
}

// Dense bf16 products with float sums, from NVIDIA's data sheets; 0: not in this list.
double peak_flops_per_s(const CudaDevice& gpu) {
  const std::string name = gpu.properties().name;
  for (const auto& [part, peak] : {std::pair<const char*, double>{"H100", 989.4e12}, std::pair<const char*, double>{"H200", 989.4e12},
                                   std::pair<const char*, double>{"A100", 312e12}, std::pair<const char*, double>{"B200", 2250e12}})
    if (name.find(part) != std::string::npos) return peak;
  return 0;
}

// Bytes and time of the section `rows`, forward and backward, of f(tape): a row program of 8192 tokens.
template <class F> void row(CudaDevice& gpu, const char* name, int d, double bandwidth, F f) {
  Tape<CudaDevice, float> tape(gpu);
  const auto step = [&] {
    const auto y = f(tape);
    tape.accumulate(y);  // a gradient to start from: whatever stands there
    const auto sum = tape.make({});
    tape.record(1, [&tape, y] { tape.grad(y); });
    tape.backward(sum);
  };
  step();
  double best = INFINITY, bytes = 0;
  for (int i = 0; i < 10; ++i) {
    gpu.profile().start();
    step();
    gpu.profile().stop();
    const Tally t = gpu.profile()[Section::rows];
    best = std::min(best, t.time_s);
    bytes = t.bytes;
  }
  fmt::print("{{\"bench\": \"rows\", \"program\": \"{}\", \"d\": {}, \"bytes_per_s\": {}, \"share_of_copy\": {}}}\n", name, d, bytes / best, bytes / best / bandwidth);
}

void rows(CudaDevice& gpu) {
  const double bandwidth = copy_bytes_per_s(gpu);
  const std::int64_t tokens = 8192;
  for (const int d : {640, 1024}) {
    Parameters<CudaDevice, float> p(gpu);
    const auto declare = [&](const char* name, Shape s) -> Parameter<float>& { return p.declare(name, s, Init::truncated_normal(1)); };
    auto &x = declare("x", {tokens, d}), &y = declare("y", {tokens, d}), &g = declare("g", {d}), &streams = declare("streams", {tokens, 4 * d});
    auto &w = declare("w", {6, d}), &scale = declare("scale", {6}), &table = declare("table", {4, 6}), &c = declare("c", {tokens, 24}), &coefficients = declare("coefficients", {24, tokens});
    p.allocate(1);
    row(gpu, "rms_norm", d, bandwidth, [&](auto& t) { return rms_norm(t.use(x), t.use(g), 1e-6); });
    row(gpu, "add_rms_norm", d, bandwidth, [&](auto& t) { return add_rms_norm(t.use(x), t.use(y), t.use(g), 1e-6)[1]; });
    row(gpu, "hyper_advance", d, bandwidth, [&](auto& t) {
      return hyper_advance(HyperTables<CudaDevice, float>{t.use(w), t.use(scale), t.use(table)}, t.use(g), t.use(streams), t.use(c), t.use(y), 1e-8, 1e-6)[0];
    });
    row(gpu, "mhc_write", d, bandwidth, [&](auto& t) { return mhc_write(t.use(streams), t.use(coefficients), t.use(y), 4)[0]; });
  }
}

void step(CudaDevice& gpu, const std::string& design, ModelConfig c, Products products, double gemm_rate) {
  const int T = 2048, batch = 4;
  gpu.set_products(products);
  Transformer<CudaDevice, float> model(gpu, c, Designs<CudaDevice, float>().make(design));
  model.initialize(0);
  Tape<CudaDevice, float> tape(gpu);
  Adamw<CudaDevice, float> adamw(model.parameters(), {});
  std::vector<std::int32_t> tokens(std::size_t(T * batch));
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::int32_t(i * 7919 % std::size_t(c.vocab_size));
  const auto held = std::make_shared<TokenBatch<CudaDevice>>(gpu, std::int64_t(tokens.size()));
  held->fill(tokens, tokens);
  adamw.prepare(1e-4);
  const auto work = [&] {
    const auto h = model.forward(tape, std::shared_ptr<const TokenBatch<CudaDevice>>(held), batch);
    tape.backward(model.head_loss(h, held, double(tokens.size())));
    adamw.launch();
    model.parameters().clear_grads();
  };
  gpu.memory().reset_peak();
  const double s = fastest_s(gpu, 3, work);
  const std::size_t memory = gpu.memory().peak();
  Repeat<CudaDevice> repeat(gpu);
  for (int i = 0; i < 2; ++i) repeat(work);
  const double graph_s = fastest_s(gpu, 3, [&] { repeat(work); });
  const double parameters = double(model.parameters().numel() - model.parameters().numel(Part::embedding));
  const double flops = double(tokens.size()) * (6 * parameters + 6.0 * T * c.d_model * c.n_layers), peak = peak_flops_per_s(gpu);
  fmt::print("{{\"bench\": \"step\", \"design\": \"{}\", \"d\": {}, \"L\": {}, \"products\": \"{}\", \"tokens\": {}, \"time_s\": {}, \"graph_time_s\": {}, "
             "\"model_flops_per_s\": {}, \"share_of_gemm\": {}, \"mfu\": {}, \"memory_bytes\": {}}}\n",
             design, c.d_model, c.n_layers, products == Products::bf16 ? "bf16" : "fp32", tokens.size(), s, graph_s, flops / graph_s, flops / graph_s / gemm_rate,
             peak > 0 ? fmt::format("{}", flops / graph_s / peak) : "null", memory);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "copy";
  try {
    CudaDevice gpu(0);
    if (what == "copy") fmt::print("{{\"bench\": \"copy\", \"device\": \"{}\", \"bytes_per_s\": {}}}\n", gpu.properties().name, copy_bytes_per_s(gpu));
    if (what == "gemm") gemm(gpu);
    if (what == "rows") rows(gpu);
    if (what == "step") {
      std::vector<std::string> designs(argv + 2, argv + argc);
      if (designs.empty()) designs = Designs<CudaDevice, float>().list();
      gpu.set_products(Products::bf16);
      const double narrow = gemm_flops_per_s(gpu, 640), wide = gemm_flops_per_s(gpu, 1024);
      for (const auto& design : designs) {
        step(gpu, design, {32000, 640, 70, 10, 10, ModelConfig::default_ffn(640)}, Products::bf16, narrow);
        step(gpu, design, {32000, 1024, 24, 16, 16, ModelConfig::default_ffn(1024)}, Products::bf16, wide);
      }
    }
    return 0;
  } catch (const cuda_error& e) {
    fmt::print("{}\n", e.what());
    return 77;
  }
}
