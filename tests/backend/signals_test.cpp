// A signal that arrives in the middle of a matrix product must change nothing.
#include <signal.h>
#include <sys/time.h>

#include <array>
#include <cstring>

#include "depthbench/backend/cpu.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

namespace {

volatile sig_atomic_t alarms = 0;

struct Alarms {  // SIGALRM every 150 us
  Alarms() {
    alarms = 0;
    struct sigaction a {};
    a.sa_handler = [](int) { alarms = alarms + 1; };
    a.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &a, &before);
    set(150);
  }
  ~Alarms() {
    set(0);
    sigaction(SIGALRM, &before, nullptr);
  }
  static void set(int us) {
    const itimerval every{{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &every, nullptr);
  }
  struct sigaction before {};
};

}  // namespace

TEST_CASE("gemm: signals in the middle of products change nothing") {
  Cpu cpu(1);
  const Products products = GENERATE(Products::fp32, Products::bf16);
  cpu.set_products(products);
  struct Case {
    int m, n, k;
    Op op_a, op_b;
    std::vector<float> want;
  };
  std::vector<float> a(257 * 96), b(257 * 96);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = float(i * 37 % 101) * 0.01f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = float(i * 53 % 97) * 0.01f;
  const auto product = [&](const Case& p) {
    std::vector<float> c(std::size_t(p.m) * p.n, -7.f);  // from the heap, which a broken product corrupts
    cpu.gemm(GemmArgs<float>{p.op_a, p.op_b, p.m, p.n, p.k, a.data(), p.op_a == Op::None ? p.k : p.m, b.data(), p.op_b == Op::None ? p.n : p.k}, 0.f, c.data(), p.n);
    return c;
  };
  std::vector<Case> cases;
  for (const auto& [m, n, k] : {std::array{64, 32, 32}, std::array{64, 96, 32}, std::array{64, 32, 96}, std::array{64, 257, 32}, std::array{257, 32, 64}})
    for (const Op op_a : {Op::None, Op::Transpose})
      for (const Op op_b : {Op::None, Op::Transpose}) {
        cases.push_back({m, n, k, op_a, op_b, {}});
        cases.back().want = product(cases.back());
      }
  const Alarms running;
  int wrong = 0;
  for (int round = 0; alarms < 8000 && round < 40000; ++round)
    for (const Case& p : cases) {
      const auto c = product(p);
      wrong += std::memcmp(c.data(), p.want.data(), c.size() * sizeof(float)) != 0;
    }
  CHECK(wrong == 0);
  CHECK(alarms >= 100);  // the test did what it says
}
