// depthbench bench rows: every row program, on data that does not fit in cache, as a share of the copy bandwidth
// measured in the same run.
#include "bench_common.hpp"
#include "depthbench/op/depth_softmax.hpp"
#include "depthbench/op/hyper_connection.hpp"
#include "depthbench/op/rms_norm.hpp"

namespace depthbench::app {
namespace {

using V = Var<Cpu, float>;

struct Bench {
  Cpu& cpu;
  const BenchOptions& options;
  double bandwidth;
  Json list = Json::array();

  // run(tape, inputs) -> outputs. Times the forward pass, and the backward pass with a gradient for every output.
  template <class Make, class Run> void time(const std::string& name, int tokens, int d, Make make, Run run) {
    Parameters<Cpu, float> parameters(cpu);
    make(parameters);
    parameters.allocate(1);
    Tape<Cpu, float> tape(cpu);
    double forward = 1e300, backward = 1e300, forward_bytes = 0, backward_bytes = 0;
    for (int i = 0; i <= options.repeats; ++i) {
      parameters.clear_grads();
      cpu.profile().start();
      const std::vector<V> outs = run(tape, parameters);
      const Tally f = cpu.profile()[Section::rows];
      V sum = tape.make({});
      tape.record(1, [&] {
        for (const V& o : outs) {
          const auto g = tape.accumulate(o);
          std::fill(g.g, g.g + o.numel(), 1e-3f);
        }
        cpu.profile().start();
      });
      tape.backward(sum);
      const Tally b = cpu.profile()[Section::rows];
      if (i == 0) continue;
      forward = std::min(forward, f.time_s);
      backward = std::min(backward, b.time_s);
      forward_bytes = f.bytes;
      backward_bytes = b.bytes;
    }
    const double fs = forward_bytes / forward / bandwidth, bs = backward_bytes / backward / bandwidth;
    if (options.json) {
      list.push_back({{"program", name}, {"tokens", tokens}, {"d", d}, {"forward_s", forward}, {"backward_s", backward}, {"forward_bytes", forward_bytes},
                      {"backward_bytes", backward_bytes}, {"forward_share", fs}, {"backward_share", bs}});
    } else {
      fmt::print("{:<30} {:>6} {:>5}   {:>8.2f} {:>7.1f} {:>6.0f}%   {:>8.2f} {:>7.1f} {:>6.0f}%\n", name, tokens, d, forward * 1e3, forward_bytes / forward * 1e-9, 100 * fs,
                 backward * 1e3, backward_bytes / backward * 1e-9, 100 * bs);
    }
  }
};

Init noise(double std = 1) { return Init::truncated_normal(std); }

void norms(Bench& b, int tokens, int d) {
  const auto make = [&](auto& p) {
    p.declare("x", {tokens, d}, noise());
    p.declare("y", {tokens, d}, noise());
    p.declare("g", {d}, Init::constant(1));
  };
  b.time("rms_norm", tokens, d, make, [](auto& t, auto& p) { return std::vector<V>{rms_norm(t.use(p["x"]), t.use(p["g"]), 1e-6)}; });
  b.time("add + rms_norm", tokens, d, make, [](auto& t, auto& p) {
    const auto o = add_rms_norm(t.use(p["x"]), t.use(p["y"]), t.use(p["g"]), 1e-6);
    return std::vector<V>(o.begin(), o.end());
  });
}

void streams(Bench& b, int tokens, int d, int n) {
  const auto make = [&](auto& p) {
    p.declare("w", {n + 2, d}, noise(0.1));
    p.declare("scale", {n + 2}, noise(0.1));
    p.declare("table", {n, n + 2}, noise());
    p.declare("g", {d}, Init::constant(1));
    p.declare("x", {tokens, n * d}, noise());
    p.declare("c", {tokens, n * (n + 2)}, noise());
    p.declare("y", {tokens, d}, noise());
  };
  const auto tables = [](auto& t, auto& p) { return HyperTables<Cpu, float>{t.use(p["w"]), t.use(p["scale"]), t.use(p["table"])}; };
  b.time(fmt::format("hyper read, n = {}", n), tokens, d, make, [&](auto& t, auto& p) {
    const auto o = hyper_read(tables(t, p), t.use(p["g"]), t.use(p["x"]), 1e-8, 1e-6);
    return std::vector<V>(o.begin(), o.end());
  });
  b.time(fmt::format("hyper write, n = {}", n), tokens, d, make,
         [](auto& t, auto& p) { return std::vector<V>{hyper_write(t.use(p["x"]), t.use(p["c"]), t.use(p["y"]))}; });
  b.time(fmt::format("hyper advance, n = {}", n), tokens, d, make, [&](auto& t, auto& p) {
    const auto o = hyper_advance(tables(t, p), t.use(p["g"]), t.use(p["x"]), t.use(p["c"]), t.use(p["y"]), 1e-8, 1e-6);
    return std::vector<V>(o.begin(), o.end());
  });
}

// Every source is read by m mixers: the backward pass pulls m gradients for each.
void depth(Bench& b, int tokens, int d, int m) {
  const auto make = [&](auto& p) {
    for (int s = 0; s < m; ++s) {
      p.declare(fmt::format("v{}", s), {tokens, d}, noise());
      p.declare(fmt::format("w{}", s), {1, d}, noise(0.1));
      p.declare(fmt::format("g{}", s), {d}, Init::constant(1));
    }
  };
  b.time(fmt::format("depth softmax, {} sources", m), tokens, d, make, [&](auto& t, auto& p) {
    std::vector<V> w, g;
    for (int l = 0; l < m; ++l) {
      w.push_back(t.use(p[fmt::format("w{}", l)]));
      g.push_back(t.use(p[fmt::format("g{}", l)]));
    }
    const DepthBank<Cpu, float> bank(mixer_keys(w, g), 1e-5);
    std::vector<typename DepthBank<Cpu, float>::Source> sources;
    std::vector<V> out;
    for (int s = 0; s < m; ++s) {
      sources.push_back(bank.publish(t.use(p[fmt::format("v{}", s)]), s, s, m - 1));
      out.push_back(bank.read(sources, s));
    }
    return out;
  });
}

}  // namespace

int bench_rows(const BenchOptions& o) {
  Cpu cpu(o.threads);
  Bench b{cpu, o, copy_bytes_per_s(o.threads, 3)};
  if (!o.json) {
    fmt::print("copy {:.1f} GB/s, {} threads, float32, vectors of {} bytes\n", b.bandwidth * 1e-9, cpu.threads(), cpu_vector_bytes);
    fmt::print("{:<30} {:>6} {:>5}   {:>8} {:>7} {:>7}   {:>8} {:>7} {:>7}\n", "program", "tokens", "d", "fwd ms", "GB/s", "share", "bwd ms", "GB/s", "share");
  }
  for (const int d : {128, 640}) {
    const int tokens = 640 * 8192 / d;
    norms(b, tokens, d);
    streams(b, tokens / 2, d, 2);
    streams(b, tokens / 2, d, 4);
    for (const int m : {16, 32, 64}) depth(b, tokens / 8, d, m);
  }
  if (o.json) fmt::print("{}\n", Json{{"copy_bytes_per_s", b.bandwidth}, {"threads", cpu.threads()}, {"programs", b.list}}.dump());
  else fmt::print("\nshare: of the copy bandwidth. Depth softmax: every mixer of the chain, all its sources, and the pulls of their gradients\n");
  return 0;
}

}  // namespace depthbench::app
