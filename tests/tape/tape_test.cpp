#include "depthbench/tape/tape.hpp"

#include "depthbench/op/add.hpp"
#include "depthbench/op/rms_norm.hpp"
#include "depthbench/op/swiglu.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;
using V = VarOf<double>;

namespace {

V layer(Bench<double>& b, V x) {  // (N, 6) -> (N, 6): x and its residual branch
  auto& tape = *x.tape;
  const auto u = rms_norm(x, tape.use(b.at(1)), 1e-6);
  return add(x,
             linear(swiglu(linear(u, tape.use(b.at(2))), linear(u, tape.use(b.at(3)))), tape.use(b.at(4))));
}
std::initializer_list<Shape> layer_shapes() {
  static const std::initializer_list<Shape> shapes{{7, 6}, {6}, {9, 6}, {9, 6}, {6, 9}};
  return shapes;
}
std::vector<std::vector<double>> all_grads(Bench<double>& b) {
  std::vector<std::vector<double>> g;
  for (int i = 0; i < int(b.parameters.list().size()); ++i) g.push_back(b.grads(i));
  return g;
}

}  // namespace

TEST_CASE("tape: the gradients of two uses add up", "[tape]") {
  Bench<double> b({{2, 3}});
  b.tape.backward(probe(add(b.var(0), b.var(0))));
  const auto v = probe_weights(6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(b.grads(0)[i] == 2 * v[i]);
}

TEST_CASE("tape: the gradients of two backward passes add up until they are cleared", "[tape]") {
  Bench<double> b({{2, 3}});
  const auto v = probe_weights(6);
  for (int pass = 1; pass <= 3; ++pass) {
    b.tape.backward(probe(b.var(0)));
    for (std::size_t i = 0; i < 6; ++i) CHECK(b.grads(0)[i] == Approx(pass * v[i]));
  }
  b.parameters.clear_grads();
  b.tape.backward(probe(b.var(0)), 0.5);  // a seed scales
  for (std::size_t i = 0; i < 6; ++i) CHECK(b.grads(0)[i] == 0.5 * v[i]);
}

TEST_CASE("tape: one argument twice", "[tape]") {
  Bench<double> b({{3, 5}, {5}});
  CHECK(b.check([&] { return probe(swiglu(b.var(0), b.var(0))); }).worst < 1e-8);
  CHECK(b.check([&] { return probe(add_rms_norm(b.var(0), b.var(0), b.var(1), 1e-6)[0]); }).worst < 1e-8);
  CHECK(b.check([&] { return probe(add_rms_norm(b.var(0), b.var(0), b.var(1), 1e-6)[1]); }).worst < 1e-8);
  CHECK(b.check([&] { return probe(linear(b.var(0), b.var(0))); }).worst < 1e-8);
  CHECK(b.check([&] {
           const auto x = b.var(0);
           return probe(add(reshape(x, {5, 3}), reshape(x, {5, 3})));
         }).worst < 1e-8);
}

TEST_CASE("tape: a value used by several ops, and ops whose outputs nobody uses", "[tape]") {
  Bench<double> b(layer_shapes());
  CHECK(b.check([&] {
    const auto x = layer(b, b.var(0));
    layer(b, x);  // leads nowhere
    return probe(add(layer(b, x), scale(x, 3.0)));
  }).worst < 1e-8);
}

TEST_CASE("tape: constants have no gradient, leaves of the caller receive theirs", "[tape]") {
  Bench<double> b({{2, 3}});
  const auto x = random_numbers(6, 3);
  std::vector<double> g(6, 100);
  bool has = false;
  const auto loss = [&] {
    const auto c = b.tape.constant(x.data(), {2, 3});
    return probe(add(add(b.var(0), c), b.tape.leaf(x.data(), g.data(), &has, {2, 3})));
  };
  const auto v = probe_weights(6);
  b.tape.backward(loss());
  CHECK(has);
  CHECK(g == v);  // the first contribution overwrites
  b.tape.backward(loss());
  for (std::size_t i = 0; i < 6; ++i) CHECK(g[i] == 2 * v[i]);
  CHECK(b.check([&] { return probe(swiglu(b.tape.constant(x.data(), {2, 3}), b.var(0))); }).worst < 1e-8);
  CHECK(b.check([&] { return probe(swiglu(b.var(0), b.tape.constant(x.data(), {2, 3}))); }).worst < 1e-8);
  CHECK(b.check([&] { return probe(linear(b.tape.constant(x.data(), {2, 3}), b.var(0))); }).worst < 1e-8);
}

TEST_CASE("tape: recomputation gives the same bits and holds less memory", "[tape]") {
  Bench<double> b(layer_shapes());
  std::size_t peak[2];
  std::vector<std::vector<double>> grads[2];
  double loss[2];
  for (const int again : {0, 1}) {
    b.parameters.clear_grads();
    b.cpu.memory().reset_peak();
    auto x = b.var(0);
    for (int i = 0; i < 8; ++i)
      x = again ? b.tape.recompute([&b, x] { return std::vector<V>{layer(b, x)}; })[0] : layer(b, x);
    const auto l = probe(x);
    loss[again] = *l.value();
    b.tape.backward(l);
    peak[again] = b.cpu.memory().peak();
    grads[again] = all_grads(b);
  }
  CHECK(loss[0] == loss[1]);
  CHECK(grads[0] == grads[1]);
  CHECK(peak[1] < peak[0] * 2 / 3);
}

TEST_CASE("tape: recomputation of several outputs, of which some pass through and some are unused",
          "[tape]") {
  Bench<double> b(layer_shapes());
  const auto run = [&](bool again) {
    b.parameters.clear_grads();
    const auto x = layer(b, b.var(0));
    const auto f = [&b, x] {
      const auto y = layer(b, x);
      return std::vector<V>{x, y, layer(b, y), scale(y, 2.0)};
    };
    const auto out = again ? b.tape.recompute(f) : f();
    b.tape.backward(probe(add(add(out[0], out[1]), scale(out[3], 0.3))));
    return all_grads(b);
  };
  CHECK(run(false) == run(true));
}

TEST_CASE("tape: recomputation inside recomputation", "[tape]") {
  Bench<double> b(layer_shapes());
  const auto run = [&](bool again) {
    b.parameters.clear_grads();
    const auto x = b.var(0);
    const auto inner = [&b](V y) { return [&b, y] { return std::vector<V>{layer(b, y)}; }; };
    const auto outer = [&] {
      return std::vector<V>{again ? b.tape.recompute(inner(layer(b, x)))[0] : inner(layer(b, x))()[0]};
    };
    b.tape.backward(probe(again ? b.tape.recompute(outer)[0] : outer()[0]));
    return all_grads(b);
  };
  CHECK(run(false) == run(true));
}

TEST_CASE("tape: without recording, only what is returned is kept", "[tape]") {
  Bench<double> b(layer_shapes());
  auto& memory = b.cpu.memory();
  const std::size_t before = memory.in_use();
  const auto x = b.var(0);
  const auto kept = b.tape.no_grad([&] { return std::vector<V>{layer(b, layer(b, x))}; });
  const std::size_t one = memory.in_use() - before;
  CHECK(one >= 7 * 6 * sizeof(double));
  CHECK(one < 2 * 7 * 6 * sizeof(double));
  CHECK(b.tape.recording());
  const auto recorded = layer(b, layer(b, b.var(0)));
  CHECK(copy_of(kept[0]) == copy_of(recorded));
  b.tape.clear();
  CHECK(memory.in_use() == before);
  // nothing was recorded for what happened inside
  const auto loss = b.tape.no_grad([&] { return std::vector<V>{probe(layer(b, b.var(0)))}; })[0];
  CHECK_THROWS_AS(b.tape.backward(loss), tape_error);
  b.tape.clear();
  try {
    b.tape.no_grad([&]() -> std::vector<V> { fail<numeric_error>("inside"); });
  } catch (const numeric_error&) {
  }
  CHECK(b.tape.recording());
}

TEST_CASE("tape: steps give back what they took, and a warm step takes nothing from the system", "[tape]") {
  Bench<double> b(layer_shapes());
  auto& memory = b.cpu.memory();
  const std::size_t before = memory.in_use();
  std::size_t reserved = 0;
  for (int step = 0; step < 6; ++step) {
    auto x = b.var(0);
    for (int i = 0; i < 4; ++i)
      x = i % 2 ? layer(b, x) : b.tape.recompute([&b, x] { return std::vector<V>{layer(b, x)}; })[0];
    b.tape.backward(probe(x));
    CHECK(memory.in_use() == before);
    if (step == 0) reserved = memory.reserved();
    CHECK(memory.reserved() == reserved);
  }
  {
    Tape<Cpu, double> other(b.cpu);
    layer(b, other.use(b.at(0)));
  }
  CHECK(memory.in_use() == before);  // a tape that goes away forgets
}

TEST_CASE("tape: refuses what it cannot do", "[tape]") {
  Bench<double> b({{2, 3}});
  Tape<Cpu, double> other(b.cpu);
  const auto elsewhere = probe(other.use(b.at(0)));
  CHECK_THROWS_AS(b.tape.backward(elsewhere), tape_error);
  CHECK_THROWS_WITH(b.tape.backward(elsewhere), "backward: the loss is a value of another tape");
  CHECK_THROWS_WITH(b.tape.backward({}), "backward: the loss is a value of another tape");
  const auto matrix = add(b.var(0), b.var(0));
  CHECK_THROWS_AS(b.tape.backward(matrix), shape_error);
  CHECK_THROWS_WITH(b.tape.backward(matrix), "backward: the loss has shape (2, 3), needs a scalar");
  const auto loss = probe(matrix);
  b.tape.backward(loss);
  const auto leaf = b.var(0);
  (void)leaf;
  Bench<double> scalar({{1}});
  const auto nothing = scalar.var(0);
  CHECK_THROWS_AS(scalar.tape.backward(nothing), tape_error);
  CHECK_THROWS_WITH(scalar.tape.backward(nothing),
                    "backward: nothing was recorded (already run, or inside no_grad)");
  Bench<double> late;
  auto& p = late.declare({2});
  CHECK_THROWS_WITH(late.tape.use(p), "use: parameter a has no value yet (call allocate())");
}

TEST_CASE("tape: a second backward pass from the same loss is refused", "[tape]") {
  Bench<double> b({{2, 3}});
  const auto loss = probe(add(b.var(0), b.var(0)));
  b.tape.backward(loss);
  CHECK_THROWS_AS(b.tape.backward(loss), tape_error);
  CHECK_THROWS_WITH(b.tape.backward(loss), "backward: nothing was recorded (already run, or inside no_grad)");
}
