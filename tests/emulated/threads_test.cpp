// The same kernels on blocks of real threads, for the thread sanitizer: a barrier that is missing is a data race there.
#include "depthbench/backend/emulated.hpp"
#include "depthbench/op/causal_attention.hpp"
#include "depthbench/op/hyper_connection.hpp"
#include "depthbench/op/linear_cross_entropy.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

using Threads = EmulatedDevice<ThreadBlock<4>>;
using R = double;

// A value and the gradients of everything it was made of: f(vars) on parameters of these shapes.
template <class Device, class F> std::vector<R> value_and_grads(Device& device, std::initializer_list<Shape> shapes, F f) {
  Tape<Device, R> tape(device);
  Parameters<Device, R> parameters(device);
  for (const auto& s : shapes) parameters.declare(fmt::format("p{}", parameters.list().size()), s, Init::truncated_normal(1));
  parameters.allocate(5);
  std::vector<Var<Device, R>> vars;
  for (auto& p : parameters.list()) vars.push_back(tape.use(p));
  const auto y = f(vars);
  std::vector<R> all = {y.values().begin(), y.values().end()};
  const auto weights = random_numbers(std::size_t(y.numel()), 7);
  tape.backward(linear(reshape(y, {1, y.numel()}), tape.constant(weights.data(), {1, y.numel()})));
  for (const auto& p : parameters.list()) all.insert(all.end(), p.grads().begin(), p.grads().end());
  return all;
}
template <class F> double difference(std::initializer_list<Shape> shapes, F f) {
  Cpu cpu(1);
  Threads threads;
  return error_of(value_and_grads(threads, shapes, f), value_and_grads(cpu, shapes, f));
}

}  // namespace

TEST_CASE("emulated threads: a row program", "[emulated]") {
  CHECK(difference({{2, 3}, {13, 3}, {}, {2}, {13}, {}, {13}, {3, 26}, {3, 8}, {3, 13}}, [](auto& p) {
          const auto t = hyper_tables(p[0], p[1], p[2], p[3], p[4], p[5]);
          return hyper_advance(t, p[6], p[7], p[8], p[9], 1e-8, 1e-6)[1];
        }) < 1e-12);
}

TEST_CASE("emulated threads: attention with depth slots", "[emulated]") {
  const RopeTable<R> rope(34, 4, 100);
  CHECK(difference({{34, 8}, {34, 4}, {34, 4}, {34, 9}}, [&](auto& p) {
          using V = std::remove_cvref_t<decltype(p[0])>;
          return causal_attention(p[0], p[1], p[2], {1, 34, 2, 1, 4}, rope, {DepthSlotVar<typename V::Device, R>{p[3], p[3], 1, 5}});
        }) < 1e-12);
}

TEST_CASE("emulated threads: the loss", "[emulated]") {
  const std::vector<std::int32_t> targets{0, 18, ignored_target, 5, 3};
  CHECK(difference({{5, 6}, {19, 6}}, [&](auto& p) { return linear_cross_entropy(p[0], p[1], targets, 4); }) < 1e-12);
}
