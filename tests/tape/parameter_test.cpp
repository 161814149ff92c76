#include "depthbench/tape/parameter.hpp"

#include "depthbench/backend/cpu.hpp"
#include "tests/catch.hpp"

using namespace depthbench;
using Table = Parameters<Cpu, float>;

namespace {
std::vector<float> values(const Parameter<float>& p) { return {p.values().begin(), p.values().end()}; }
}  // namespace

TEST_CASE("parameters: initial values", "[tape]") {
  Cpu cpu(1);
  Table t(cpu);
  auto& c = t.declare("constant", {3}, Init::constant(1.5));
  auto& n = t.declare("normal", {100, 100}, Init::truncated_normal(0.02));
  auto& v = t.declare("table", {2, 2}, Init::of_table({1, 2, 3, 4}));
  auto& s = t.declare("scalar", {}, Init::constant(0.01));
  t.allocate(7);
  CHECK(values(c) == std::vector<float>{1.5, 1.5, 1.5});
  CHECK(values(v) == std::vector<float>{1, 2, 3, 4});
  CHECK(values(s) == std::vector<float>{0.01f});
  double mean = 0, square = 0;
  float largest = 0;
  for (const float x : n.values())
    mean += x / 1e4, square += double(x) * x / 1e4, largest = std::max(largest, std::fabs(x));
  CHECK(std::fabs(mean) < 4 * 0.02 / 100);
  CHECK(std::sqrt(square) == Approx(0.02 * 0.98658).epsilon(0.03));  // the deviation of a normal cut off at 3
  CHECK(largest <= 0.06f);
  CHECK(largest > 0.055f);
}

TEST_CASE("parameters: a value depends on seed, name and index, not on who was declared before", "[tape]") {
  Cpu cpu(1);
  Table a(cpu), b(cpu), c(cpu);
  const auto init = Init::truncated_normal(1);
  a.declare("x", {50}, init);
  a.declare("y", {50}, init);
  b.declare("other", {7}, init);
  b.declare("y", {50}, init);
  b.declare("x", {50}, init);
  c.declare("x", {50}, init);
  a.allocate(1);
  b.allocate(1);
  c.allocate(2);
  CHECK(values(a["x"]) == values(b["x"]));
  CHECK(values(a["y"]) == values(b["y"]));
  CHECK(values(a["x"]) != values(a["y"]));
  CHECK(values(a["x"]) != values(c["x"]));
}

TEST_CASE("parameters: counts, by part", "[tape]") {
  Cpu cpu(1);
  Table t(cpu);
  t.declare("e", {10, 4}, {}, Decay::yes, Part::embedding);
  t.declare("w", {4, 4}, {});
  t.declare("g", {4}, {}, Decay::yes, Part::norm);
  t.declare("r", {}, {}, Decay::no, Part::residual);
  t.declare("h", {10, 4}, {}, Decay::yes, Part::head);
  CHECK(t.numel() == 40 + 16 + 4 + 1 + 40);
  CHECK(t.numel(Part::embedding) == 40);
  CHECK(t.numel(Part::backbone) == 16);
  CHECK(t.numel(Part::norm) == 4);
  CHECK(t.numel(Part::residual) == 1);
  CHECK(t.numel(Part::head) == 40);
  CHECK(cpu.memory().in_use() == 0);  // declaring takes no memory
}

TEST_CASE("parameters: stand side by side without touching each other, and are given back", "[tape]") {
  Cpu cpu(1);
  {
    Table t(cpu);
    for (int i = 0; i < 20; ++i) t.declare(fmt::format("p{}", i), {i}, Init::constant(i));
    t.allocate(0);
    for (const auto& p : t.list()) {
      CHECK(reinterpret_cast<std::uintptr_t>(p.value) % 64 == 0);
      for (const float x : p.values()) CHECK(double(x) == p.init.value);
      for (const float x : p.grads()) CHECK(x == 0);
    }
  }
  CHECK(cpu.memory().in_use() == 0);
}

TEST_CASE("parameters: settled gradients are zero where no op contributed", "[tape]") {
  Cpu cpu(1);
  Table t(cpu);
  auto& a = t.declare("a", {2}, {});
  auto& b = t.declare("b", {2}, {});
  t.allocate(0);
  for (auto* p : {&a, &b}) std::fill(p->grad, p->grad + 2, 5.f);
  a.has_grad = true;
  t.settle_grads();
  CHECK(a.grads()[1] == 5);
  CHECK(b.grads()[1] == 0);
  CHECK(b.has_grad);
  t.clear_grads();
  CHECK_FALSE(a.has_grad);
}

TEST_CASE("parameters: what they refuse", "[tape]") {
  Cpu cpu(1);
  Table t(cpu);
  t.declare("a", {2}, {});
  CHECK_THROWS_WITH(t.declare("a", {3}, {}), "parameters: a is declared twice");
  CHECK_THROWS_WITH(t["b"], "parameters: there is none named b");
  CHECK(t.find("b") == nullptr);
  CHECK(t.find("a") == &t["a"]);
  t.declare("table", {3}, Init::of_table({1, 2}));
  CHECK_THROWS_WITH(t.allocate(0), "parameters: the initial table of table has 2 values, needs 3");
  CHECK_THROWS_WITH(t.declare("late", {2}, {}), "parameters: late is declared after allocate()");
  CHECK_THROWS_AS(t["b"], config_error);
}
