// Every op by itself, on any device: its outputs and all its gradients, for comparing two devices.
//   every_op<double>(device, d, tokens, [](const std::string& name, const std::vector<double>& results) { ... })
//   d: width of a row; n = 1, 2, 3, 4 streams where an op has them; the same inputs on any device
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "depthbench/op/add.hpp"
#include "depthbench/op/causal_attention.hpp"
#include "depthbench/op/depth_softmax.hpp"
#include "depthbench/op/embedding.hpp"
#include "depthbench/op/hyper_connection.hpp"
#include "depthbench/op/layer_norm.hpp"
#include "depthbench/op/linear_cross_entropy.hpp"
#include "depthbench/op/mhc.hpp"
#include "depthbench/op/streams.hpp"
#include "depthbench/op/swiglu.hpp"

namespace depthbench_test {

template <class R, class Device> struct OpBench {
  using V = depthbench::Var<Device, R>;
  Device& device;
  std::function<void(const std::string&, const std::vector<double>&)> report;

  // f(inputs) -> outputs; inputs of these shapes, standard normal numbers. The loss is a random number times each output.
  template <class F> void operator()(const std::string& name, std::initializer_list<depthbench::Shape> shapes, F f) {
    using namespace depthbench;
    Parameters<Device, R> parameters(device);
    for (const auto& s : shapes) parameters.declare(fmt::format("x{}", parameters.list().size()), s, Init::truncated_normal(1));
    parameters.allocate(5);
    Tape<Device, R> tape(device);
    std::vector<V> inputs;
    for (auto& p : parameters.list()) inputs.push_back(tape.use(p));
    std::vector<double> all;
    const auto append = [&](const R* p, std::int64_t n) {
      std::vector<R> v(static_cast<std::size_t>(n));
      device.download(v.data(), p, v.size());
      all.insert(all.end(), v.begin(), v.end());
    };
    const std::vector<V> outputs = f(inputs);
    for (const V& y : outputs) append(y.value(), y.numel());
    // gradients of the outputs, handed in by an op of our own
    const auto loss = tape.make({});
    tape.record(1, [&] {
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Rng rng(3, i);
        std::vector<R> v(std::size_t(outputs[i].numel()));
        for (std::size_t j = 0; j < v.size(); ++j) v[j] = R(rng.normal(j));
        device.upload(tape.accumulate(outputs[i]).g, v.data(), v.size());
      }
    });
    tape.backward(loss);
    parameters.settle_grads();
    for (const auto& p : parameters.list()) append(p.grad, p.numel());
    report(name, all);
  }
};

template <class R, class Device, class F> void every_op(Device& device, int d, int tokens, F report) {
  using namespace depthbench;
  OpBench<R, Device> op{device, report};
  using V = Var<Device, R>;
  using In = const std::vector<V>&;
  const auto list = [](const auto& array) { return std::vector<V>(array.begin(), array.end()); };
  const std::int64_t N = tokens, f = d + 4;
  const Shape row{N, d}, gain{d};

  op("add", {row, row}, [](In x) { return std::vector{add(x[0], x[1])}; });
  op("scale", {row}, [](In x) { return std::vector{scale(x[0], R(0.7))}; });
  op("linear", {row, {f, d}}, [](In x) { return std::vector{linear(x[0], x[1])}; });
  op("swiglu", {{N, f}, {N, f}}, [](In x) { return std::vector{swiglu(x[0], x[1])}; });
  op("rms_norm", {row, gain}, [](In x) { return std::vector{rms_norm(x[0], x[1], 1e-6, 0.5)}; });
  op("add_rms_norm", {row, row, gain}, [&](In x) { return list(add_rms_norm(x[0], x[1], x[2], 1e-6)); });
  op("add_layer_norm", {row, row, gain}, [](In x) { return std::vector{add_layer_norm(x[0], x[1], x[2], 1e-6, 1.7)}; });
  op("sandwich_advance", {row, row, gain, gain}, [&](In x) { return list(sandwich_advance(x[0], x[1], x[2], x[3], 1e-6)); });
  op("sandwich_write", {row, row, gain}, [](In x) { return std::vector{sandwich_write(x[0], x[1], x[2], 1e-6)}; });
  op("post_norm_advance", {row, row, gain, gain}, [&](In x) { return list(post_norm_advance(x[0], x[1], x[2], x[3], 1e-6, 3.0)); });
  op("post_norm_write", {row, row, gain}, [](In x) { return std::vector{post_norm_write(x[0], x[1], x[2], 1e-6, 3.0)}; });
  op("embedding", {{7, d}}, [&](In x) {
    std::vector<std::int32_t> t(std::size_t(tokens), 0);
    for (int i = 0; i < tokens; ++i) t[std::size_t(i)] = i * i % 7;
    return std::vector{embedding<Device, R>(std::span<const std::int32_t>(t), x[0])};
  });
  op("linear_cross_entropy", {row, {13, d}}, [&](In x) {
    std::vector<std::int32_t> t(std::size_t(tokens), 0);
    for (int i = 0; i < tokens; ++i) t[std::size_t(i)] = i % 5 == 2 ? ignored_target : i * 3 % 13;
    return std::vector{linear_cross_entropy<Device, R>(x[0], x[1], std::span<const std::int32_t>(t), 9.0)};
  });
  for (const int n : {1, 2, 3, 4}) {
    const auto named = [n](const char* name) { return fmt::format("{}, n = {}", name, n); };
    const Shape streams{N, std::int64_t(n) * d}, table{n, n + 2}, c{N, std::int64_t(n) * (n + 2)}, m{n * n + 2 * n, N};
    op(named("repeat_streams"), {row}, [n](In x) { return std::vector{repeat_streams(x[0], n)}; });
    op(named("sum_streams"), {streams}, [n](In x) { return std::vector{sum_streams(x[0], n, R(0.5))}; });
    op(named("hyper_tables"), {{n, n + 1}, {d, n + 1}, {}, {n}, {d}, {}}, [](In x) {
      const auto t = hyper_tables(x[0], x[1], x[2], x[3], x[4], x[5]);
      return std::vector{t.w, t.scale, t.table};
    });
    op(named("hyper_read"), {{n + 2, d}, {n + 2}, table, gain, streams}, [&](In x) {
      return list(hyper_read(HyperTables<Device, R>{x[0], x[1], x[2]}, x[3], x[4], 1e-8, 1e-6));
    });
    op(named("hyper_write"), {streams, c, row}, [](In x) { return std::vector{hyper_write(x[0], x[1], x[2])}; });
    op(named("hyper_advance"), {{n + 2, d}, {n + 2}, table, gain, streams, c, row}, [&](In x) {
      return list(hyper_advance(HyperTables<Device, R>{x[0], x[1], x[2]}, x[3], x[4], x[5], x[6], 1e-8, 1e-6));
    });
    op(named("mhc_coefficients"), {{std::int64_t(n) * d, n * n + 2 * n}, {n * n + 2 * n}, {}, {}, {}, streams}, [n](In x) {
      MhcOptions o;
      o.n = n;
      return std::vector{mhc_coefficients(MhcParameters<Device, R>{x[0], x[1], x[2], x[3], x[4]}, x[5], stream_squares(x[5]), o)};
    });
    op(named("mhc_read"), {streams, m, gain}, [n](In x) { return std::vector{mhc_read(x[0], x[1], x[2], n, 1e-6)}; });
    op(named("mhc_write"), {streams, m, row}, [&](In x) { return list(mhc_write(x[0], x[1], x[2], n)); });
  }
  op("depth softmax", {row, row, row, {1, d}, {1, d}, gain, gain}, [](In x) {
    const DepthBank<Device, R> bank{mixer_keys<Device, R>({x[3], x[4]}, {x[5], x[6]}), 1e-5};
    std::vector<typename DepthBank<Device, R>::Source> sources;
    for (int s = 0; s < 3; ++s) sources.push_back(bank.publish(x[std::size_t(s)], s, 0, 1));
    const auto first = bank.read(std::span(sources).first(2), 0);
    return std::vector{first, bank.read(sources, 1)};
  });
  for (const int slots : {0, 3}) for (const int h : {6, 40}) {
    const AttentionShape s{1, tokens, 4, 2, h};
    const Shape q{N, s.width()}, kv{N, s.kv_width()}, both{N, 2 * s.kv_width()};
    const auto rope = std::make_shared<RopeTable<R>>(tokens, h, 100.0);
    rope->place(device);
    op(fmt::format("causal_attention, h = {}, {} slots", h, slots), {q, kv, kv, both, kv, kv}, [&](In x) {
      std::vector<DepthSlotVar<Device, R>> list;
      if (slots > 0) list = {{x[3], x[3], 0, s.kv_width()}, {x[4], x[5]}, {x[1], x[2]}};
      x[0].tape->keep(rope);
      return std::vector{causal_attention(x[0], x[1], x[2], s, *rope, list)};
    });
  }
}

}  // namespace depthbench_test
