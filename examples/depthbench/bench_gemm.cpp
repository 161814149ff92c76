// depthbench bench gemm: what the matrix library reaches at the model's shapes.
#include "bench_common.hpp"

namespace depthbench::app {

GemmRate gemm_rate(Cpu& cpu, const GemmShape& s, int repeats) {
  const auto m = s.m, n = s.n, k = s.k;
  auto& memory = cpu.memory();
  float *x = memory.acquire<float>(std::size_t(m * k)), *w = memory.acquire<float>(std::size_t(n * k)), *y = memory.acquire<float>(std::size_t(m * n));
  for (std::int64_t i = 0; i < m * k; ++i) x[i] = float(i % 7) * 0.1f;
  for (std::int64_t i = 0; i < n * k; ++i) w[i] = float(i % 5) * 0.1f;
  const double flops = 2.0 * double(m) * double(n) * double(k);
  const double forward = best_time_s(repeats, [&] { cpu.gemm(GemmArgs<float>{Op::None, Op::Transpose, m, n, k, x, k, w, k}, 0.f, y, n); });
  const double backward = best_time_s(repeats, [&] {
    cpu.gemm(GemmArgs<float>{Op::Transpose, Op::None, n, k, m, y, n, x, k}, 0.f, w, k);
    cpu.gemm(GemmArgs<float>{Op::None, Op::None, m, k, n, y, n, w, k}, 0.f, x, k);
  });
  memory.release(x, std::size_t(m * k) * sizeof(float));
  memory.release(w, std::size_t(n * k) * sizeof(float));
  memory.release(y, std::size_t(m * n) * sizeof(float));
  return {flops / forward, 2 * flops / backward};
}

double gemm_flops_per_s(Cpu& cpu, const ModelConfig& c, std::int64_t tokens, int repeats) {
  double flops = 0, time = 0;
  for (const GemmShape& s : gemm_shapes(c, tokens)) {
    const GemmRate r = gemm_rate(cpu, s, repeats);
    const double f = 2.0 * double(s.m) * double(s.n) * double(s.k) * s.count;
    flops += 3 * f;
    time += f / r.forward + 2 * f / r.backward;
  }
  return flops / time;
}

ModelConfig bench_model(const BenchOptions& o) {
  ModelConfig c;
  c.vocab_size = o.vocab_size;
  c.d_model = o.d_model;
  c.n_layers = o.n_layers;
  c.n_heads = o.n_heads > 0 ? o.n_heads : o.d_model % 64 == 0 && o.d_model >= 256 ? o.d_model / 64 : std::max(1, o.d_model / 32);
  c.n_kv_heads = c.n_heads;
  c.ffn_hidden = ModelConfig::default_ffn(o.d_model);
  check(c);
  return c;
}

int bench_gemm(const BenchOptions& o) {
  Cpu cpu(o.threads);
  cpu.set_products(products_of(o));
  const ModelConfig c = bench_model(o);
  Json list = Json::array();
  if (!o.json) fmt::print("{}, {} threads, {}\n{:>7} {:>7} {:>7}   {:>14}   {:>14}\n", Cpu::gemm_name(), cpu.threads(), products_of(o) == Products::bf16 ? "bfloat16 inputs" : "float32", "rows", "out", "in", "y=xW^T GFLOP/s", "dW, dx GFLOP/s");
  for (const GemmShape& s : gemm_shapes(c, std::int64_t(o.seq_len) * o.batch)) {
    const GemmRate r = gemm_rate(cpu, s, o.repeats);
    if (o.json) list.push_back({{"rows", s.m}, {"out", s.n}, {"in", s.k}, {"forward_flops_per_s", r.forward}, {"backward_flops_per_s", r.backward}});
    else fmt::print("{:>7} {:>7} {:>7}   {:>14.1f}   {:>14.1f}\n", s.m, s.n, s.k, r.forward * 1e-9, r.backward * 1e-9);
  }
  if (o.json) fmt::print("{}\n", Json{{"library", Cpu::gemm_name()}, {"threads", cpu.threads()}, {"shapes", list}}.dump());
  return 0;
}

int bench(const BenchOptions& o) {
  if (o.what == "gemm") return bench_gemm(o);
  if (o.what == "rows") return bench_rows(o);
  if (o.what == "step") return bench_step(o);
  if (o.what == "account") return bench_account(o);
  if (o.what == "memory") return bench_memory(o);
  fail<config_error>("bench: there is no benchmark {}; there are gemm, rows, step, account and memory", o.what);
}

}  // namespace depthbench::app
