// Shared by the benchmarks: best of several runs, copy bandwidth, and how numbers are shown.
#pragma once
#include <chrono>
#include <nlohmann/json.hpp>

#include "bench.hpp"
#include "depthbench/backend/cpu.hpp"
#include "depthbench/model/config.hpp"

namespace depthbench::app {

using Json = nlohmann::ordered_json;

template <class F> double best_time_s(int repeats, F&& f) {
  double best = 1e300;
  for (int i = 0; i <= repeats; ++i) {  // the first run warms up
    const auto start = std::chrono::steady_clock::now();
    f();
    const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0 && t < best) best = t;
  }
  return best;
}

// Bytes read and written per second by a copy that does not fit in cache.
inline double copy_bytes_per_s(int threads, int repeats) {
  Cpu cpu(threads);  // of its own: the arrays go back to the system
  const std::size_t n = std::size_t{32} << 20;
  float* from = cpu.memory().acquire<float>(n);
  float* to = cpu.memory().acquire<float>(n);
  cpu.zero(from, n);
  const double t = best_time_s(repeats, [&] { cpu.copy(to, from, n); });
  cpu.memory().release(from, n * sizeof(float));
  cpu.memory().release(to, n * sizeof(float));
  return 2.0 * double(n) * sizeof(float) / t;
}

struct GemmShape {
  std::int64_t m, n, k;
  double count;  // times in one forward pass
};
inline std::vector<GemmShape> gemm_shapes(const ModelConfig& c, std::int64_t tokens) {
  const double L = c.n_layers;
  return {{tokens, c.d_model, c.d_model, 2 * L},
          {tokens, c.kv_width(), c.d_model, 2 * L},
          {tokens, c.ffn_hidden, c.d_model, 2 * L},
          {tokens, c.d_model, c.ffn_hidden, L},
          {tokens, c.vocab_size, c.d_model, 1}};
}

// FLOPs per second of y = x W^T at a shape, and of the two products of its backward pass.
struct GemmRate {
  double forward, backward;
};
GemmRate gemm_rate(Cpu& cpu, const GemmShape& shape, int repeats);
// All products of a training step at their measured rates.
double gemm_flops_per_s(Cpu& cpu, const ModelConfig& c, std::int64_t tokens, int repeats);

ModelConfig bench_model(const BenchOptions& o);
inline Products products_of(const BenchOptions& o) { return o.precision == "fp32" ? Products::fp32 : Products::bf16; }
int bench_gemm(const BenchOptions& o);
int bench_rows(const BenchOptions& o);
int bench_step(const BenchOptions& o);
int bench_account(const BenchOptions& o);
int bench_memory(const BenchOptions& o);

}  // namespace depthbench::app
