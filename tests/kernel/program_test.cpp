// Leaves: where a program reads and writes, what a null or an existing gradient means, partial sums by team.
#include "depthbench/kernel/program.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "depthbench/core/dtype.hpp"
#include "tests/catch.hpp"

using namespace depthbench;

namespace {

struct EveryLeaf {
  using params = Leaves<Channels<2>, Param<1, 3>>;
  using tokens = Leaves<Rows<2>, Token<2, 3>, OutRows<1>, OutToken<2, 3>>;
  void operator()(auto&, auto& w, auto& p, auto& x, auto& t, auto& y, auto& z) const {
    auto m = moments(x, w);        // (2, 3)
    auto a = m * p + t;            // (2, 3)
    y = mix(transpose(column<0>(a)), x);
    z = a;
  }
};

struct Double {
  using params = Leaves<>;
  using tokens = Leaves<Rows<1>, OutRows<1>>;
  void operator()(auto&, auto& x, auto& y) const { y = same(x) + same(x); }
};

// An array between two margins that must not change.
template <class R> struct Guarded {
  static constexpr std::size_t margin = 32;
  std::vector<R> all;
  explicit Guarded(std::size_t n, R fill) : all(n + 2 * margin, R(-77)) {
    std::fill(data(), data() + n, fill);
  }
  R* data() { return all.data() + margin; }
  std::size_t size() const { return all.size() - 2 * margin; }
  int damage() const {
    int n = 0;
    for (std::size_t i = 0; i < margin; ++i) n += !(all[i] == R(-77)) + !(all[all.size() - 1 - i] == R(-77));
    return n;
  }
  int unwritten() {
    int n = 0;
    for (std::size_t i = 0; i < size(); ++i) n += !std::isfinite(data()[i]);
    return n;
  }
};

template <class R> void writes_everything_and_nothing_else(int d) {
  constexpr int tokens = 5, teams = 3;
  constexpr R nan = std::numeric_limits<R>::quiet_NaN();
  const std::size_t D = std::size_t(d);
  std::vector<R> w(2 * D, R(0.5)), p(3, R(0.25)), x(tokens * 2 * D, R(1)), t(tokens * 6, R(0.1)),
      gy(tokens * D, R(1)), gz(tokens * 6, R(1));
  Guarded<R> y(tokens * D, nan), z(tokens * 6, nan), gx(tokens * 2 * D, nan), gt(tokens * 6, nan),
      gw(teams * 2 * D, nan), gp(teams * 3, nan);
  std::vector<std::byte> memory(std::size_t(96) * (D * sizeof(R) + 64) + 64);
  void* arena = memory.data();
  std::size_t space = memory.size();
  std::align(64, 1, arena, space);
  const auto run = [&]<Mode M>(R* gradient_of_x, bool add) {
    ProgramArgs<EveryLeaf, R, R> args{};
    args.params.head = {w.data(), M == Mode::Bwd ? gw.data() : nullptr};
    args.params.tail.head = {p.data(), M == Mode::Bwd ? gp.data() : nullptr};
    args.tokens.head = {x.data(), gradient_of_x, add};
    args.tokens.tail.head = {t.data(), M == Mode::Bwd ? gt.data() : nullptr, false};
    args.tokens.tail.tail.head = {y.data(), gy.data()};
    args.tokens.tail.tail.tail.head = {z.data(), gz.data()};
    for (int team = 0; team < teams; ++team) {
      SerialTeam<R> serial(d, arena);
      run_program<M, R>(EveryLeaf{}, serial, args, team, tokens, teams, team);
      const int kept = M == Mode::Bwd ? EveryLeaf::params::accumulators * serial.packs() : 0;
      CHECK(serial.top - kept == arena);  // the rows of every token were given back
    }
  };
  CAPTURE(d);
  run.template operator()<Mode::Fwd>(nullptr, false);
  run.template operator()<Mode::Bwd>(gx.data(), false);
  for (auto* g : {&y, &z, &gx, &gt, &gw, &gp}) {
    CHECK(g->damage() == 0);
    CHECK(g->unwritten() == 0);
  }
  const std::vector<R> once(gx.data(), gx.data() + gx.size());
  run.template operator()<Mode::Bwd>(gx.data(), true);  // adds to what is there
  int wrong = 0;
  for (std::size_t i = 0; i < once.size(); ++i) wrong += gx.data()[i] != 2 * once[i];
  CHECK(wrong == 0);
  CHECK(gx.damage() == 0);
  run.template operator()<Mode::Bwd>(nullptr, false);  // a gradient that nobody wants
  CHECK(gx.data()[0] == 2 * once[0]);
}

}  // namespace

TEST_CASE("program: writes every element of its outputs and gradients, and nothing beside them", "[kernel]") {
  for (int d = 1; d <= 40; ++d) writes_everything_and_nothing_else<double>(d);
  for (const int d : {1, 7, 16, 31, 33, 65}) writes_everything_and_nothing_else<float>(d);
}

TEST_CASE("program: a team without tokens leaves zero partial sums", "[kernel]") {
  std::vector<double> w(10, 1), p(3, 1), gw(10, 99), gp(3, 99);
  std::vector<std::byte> memory(1 << 16);
  void* arena = memory.data();
  std::size_t space = memory.size();
  std::align(64, 1, arena, space);
  ProgramArgs<EveryLeaf, double, double> args{};
  args.params.head = {w.data(), gw.data()};
  args.params.tail.head = {p.data(), gp.data()};
  SerialTeam<double> team(5, arena);
  run_program<Mode::Bwd, double>(EveryLeaf{}, team, args, 0, 0, 1, 0);
  CHECK(gw == std::vector<double>(10, 0));
  CHECK(gp == std::vector<double>(3, 0));
}

TEST_CASE("program: rows stored as bfloat16, computed in float", "[kernel]") {
  for (const int d : {1, 15, 16, 33}) {
    std::vector<bfloat16> x(std::size_t(2 * d)), y(std::size_t(2 * d) + 1, bfloat16(-7.f));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bfloat16(float(i) * 0.5f);
    std::vector<std::byte> memory(1 << 16);
    void* arena = memory.data();
    std::size_t space = memory.size();
    std::align(64, 1, arena, space);
    ProgramArgs<Double, bfloat16, float> args{};
    args.tokens.head = {x.data(), nullptr, false};
    args.tokens.tail.head = {y.data(), nullptr};
    SerialTeam<float> team(d, arena);
    run_program<Mode::Fwd, bfloat16>(Double{}, team, args, 0, 2, 1, 0);
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) wrong += float(y[i]) != 2 * float(x[i]);
    CHECK(wrong == 0);
    CHECK(float(y.back()) == -7.f);
  }
}

TEST_CASE("program: the CPU's team is a team", "[kernel]") {
  CHECK(TeamLike<SerialTeam<float>>);
  CHECK(TeamLike<SerialTeam<double>>);
  alignas(64) float row[cpu_pack<float>::width];
  for (int i = 0; i < cpu_pack<float>::width; ++i) row[i] = float(i % 7 - 3);
  const auto p = load_pack<cpu_pack<float>>(row, cpu_pack<float>::width);
  float sum = 0, top = row[0];
  for (const float x : row) sum += x, top = std::max(top, x);
  CHECK(SerialTeam<float>::hsum(p) == sum);
  CHECK(SerialTeam<float>::hmax(p) == top);
}
