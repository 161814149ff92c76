// The CPU device: how work is cut, and that results have the same bits on any number of threads.
#include "depthbench/backend/cpu.hpp"

#include <cstring>

#include "depthbench/model/transformer.hpp"
#include "depthbench/op/depth_softmax.hpp"
#include "depthbench/residual/attn_res.hpp"
#include "depthbench/residual/pre_ln.hpp"
#include "depthbench/train/adamw.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

struct AddOne {
  double* y;
  int moves() const { return 2; }
  int flops() const { return 1; }
  template <class P>
  void at(std::size_t i, int left) const {
    store_pack(y + i, load_pack<P>(y + i, left) + P::splat(1), left);
  }
};

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Everything f(bench) returns, for 1 to 4 threads.
template <class F> void same_on_any_number_of_threads(F f) {
  const auto one = f(1);
  for (const int threads : {2, 3, 4}) {
    CAPTURE(threads);
    CHECK(same_bits(one, f(threads)));
  }
}
template <class R>
void append(std::vector<R>& all, std::span<const R> part) {
  all.insert(all.end(), part.begin(), part.end());
}

// A value and the gradients of all parameters of the op that makes it.
template <class F>
std::vector<float> value_and_grads(int threads, std::initializer_list<Shape> shapes, F op) {
  Bench<float> bench(shapes, threads);
  const auto y = op(bench);
  std::vector<float> all = copy_of(y);
  bench.tape.backward(probe(y));
  for (const auto& p : bench.parameters.list()) append(all, p.grads());
  return all;
}

std::vector<std::int32_t> some_tokens(std::size_t n, std::int32_t vocab) {
  std::vector<std::int32_t> t(n);
  const Rng rng(4);
  for (std::size_t i = 0; i < n; ++i) t[i] = std::int32_t(rng.below(i, std::uint64_t(vocab)));
  return t;
}

// Three optimizer steps; losses, gradients norms and parameters.
template <template <class, class> class Design>
std::vector<double> training(int threads, Activations activations) {
  Cpu cpu(threads);
  ModelConfig config;
  config.vocab_size = 300;
  config.d_model = 32;
  config.n_layers = 2;
  config.ffn_hidden = 80;
  config.n_kv_heads = 2;
  Transformer<Cpu, float> model(cpu, config, std::make_unique<Design<Cpu, float>>());
  model.initialize(3);
  Adamw<Cpu, float> adamw(model.parameters(), {});
  Tape<Cpu, float> tape(cpu);
  const auto tokens = some_tokens(2 * 100, 300), targets = some_tokens(2 * 100, 299);
  std::vector<double> all;
  for (int step = 0; step < 3; ++step) {
    const auto loss = model.loss(tape, tokens, targets, 2, 200, activations);
    all.push_back(*loss.value());
    tape.backward(loss);
    all.push_back(adamw.step(1e-2));
  }
  for (const auto& p : model.parameters().list()) all.insert(all.end(), p.values().begin(), p.values().end());
  return all;
}

}  // namespace

TEST_CASE("cpu: chunks cover every element once", "[backend]") {
  Cpu cpu(3);
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{32767}, std::size_t{32768},
                              std::size_t{32769}, std::size_t{100001}}) {
    std::vector<int> seen(n + 1);
    cpu.for_chunks(n, [&](std::size_t first, std::size_t count) {
      for (std::size_t i = first; i < first + count; ++i) ++seen[i];
    });
    CHECK(std::count(seen.begin(), seen.end(), 1) == std::ptrdiff_t(n));
    CHECK(seen[n] == 0);
  }
}

TEST_CASE("cpu: packs end at the last element", "[backend]") {
  Cpu cpu(2);
  for (std::size_t n = 0; n < 70; ++n) for (const std::size_t more : {0, 32768}) {
    std::vector<double> y(n + more + 1, 5);
    cpu.for_packs<double>(n + more, AddOne{y.data()});
    CHECK(std::count(y.begin(), y.end(), 6) == std::ptrdiff_t(n + more));
    CHECK(y.back() == 5);
  }
}

TEST_CASE("cpu: tiles of tokens", "[backend]") {
  Cpu cpu(2);
  for (const int tokens : {0, 1, 15, 16, 17, 100}) {
    std::vector<int> seen(std::size_t(tokens) + 1);
    cpu.for_tiles<float>(tokens, 16, 8, [&](auto& team, int first, int last) {
      if (team.d == 8 && last - first <= 16) for (int t = first; t < last; ++t) ++seen[std::size_t(t)];
    });
    CHECK(std::count(seen.begin(), seen.end(), 1) == tokens);
  }
}

TEST_CASE("cpu: zero, copy, and partial sums folded in order", "[backend]") {
  Cpu cpu(2);
  const auto x = random_numbers<float>(70000, 1);
  std::vector<float> y(x.size() + 1, 3);
  cpu.copy(y.data(), x.data(), x.size());
  CHECK(std::equal(x.begin(), x.end(), y.begin()));
  cpu.zero(y.data(), x.size());
  CHECK(std::count(y.begin(), y.end(), 0.f) == std::ptrdiff_t(x.size()));
  CHECK(y.back() == 3);

  const std::size_t n = 33;
  const auto part = random_numbers<float>(n * Cpu::teams, 2);
  std::vector<float> fresh(n, 99), added(n, 2);
  cpu.fold(part.data(), n, fresh.data(), false);
  cpu.fold(part.data(), n, added.data(), true);
  int wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    float s = 0, t = 2;
    for (int k = 0; k < Cpu::teams; ++k) s += part[std::size_t(k) * n + i], t += part[std::size_t(k) * n + i];
    wrong += fresh[i] != s || added[i] != t;
  }
  CHECK(wrong == 0);
}

TEST_CASE("cpu: matrix products have the same bits on any number of threads", "[backend]") {
  same_on_any_number_of_threads([](int threads) {
    return value_and_grads(threads, {{700, 96}, {500, 96}},
                           [](auto& b) { return linear(b.var(0), b.var(1)); });
  });
}

TEST_CASE("cpu: row programs have the same bits on any number of threads", "[backend]") {
  for (const int tokens : {3, 16, 100})
    same_on_any_number_of_threads([&](int threads) {
      return value_and_grads(threads, {{tokens, 33}, {tokens, 33}, {33}},
                             [](auto& b) { return add_rms_norm(b.var(0), b.var(1), b.var(2), 1e-6)[1]; });
    });
}

TEST_CASE("cpu: depth softmax has the same bits on any number of threads", "[backend]") {
  same_on_any_number_of_threads([](int threads) {
    return value_and_grads(threads, {{100, 24}, {100, 24}, {1, 24}, {24}}, [](auto& b) {
      const DepthBank<Cpu, float> bank(mixer_keys<Cpu, float>({b.var(2)}, {b.var(3)}), 1e-5);
      return bank.read(std::vector{bank.publish(b.var(0), 0, 0, 0), bank.publish(b.var(1), 1, 0, 0)}, 0);
    });
  });
}

TEST_CASE("cpu: attention has the same bits on any number of threads", "[backend]") {
  const RopeTable<float> rope(130, 8, 10000);
  const AttentionShape shape{2, 130, 4, 2, 8};
  same_on_any_number_of_threads([&](int threads) {
    return value_and_grads(threads, {{260, 32}, {260, 16}, {260, 16}}, [&](auto& b) {
      return causal_attention(b.var(0), b.var(1), b.var(2), shape, rope);
    });
  });
}

TEST_CASE("cpu: training has the same bits on any number of threads, kept or recomputed", "[backend]") {
  for (const auto activations : {Activations::keep, Activations::recompute}) {
    same_on_any_number_of_threads([&](int threads) { return training<PreLn>(threads, activations); });
    same_on_any_number_of_threads([&](int threads) { return training<AttnRes>(threads, activations); });
  }
  CHECK(same_bits(training<PreLn>(1, Activations::keep), training<PreLn>(1, Activations::recompute)));
  CHECK(same_bits(training<AttnRes>(1, Activations::keep), training<AttnRes>(1, Activations::recompute)));
}
