// The emulated block: what it computes, and that each kind of fault in a kernel is found and named.
#include "depthbench/backend/emulated_block.hpp"

#include "depthbench/kernel/block_attention.hpp"
#include "depthbench/kernel/rope.hpp"
#include "depthbench/kernel/simt_team.hpp"
#include "tests/catch.hpp"
#include "tests/emulated/faults.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

using Block = FiberBlock<8>;
using Prim = EmulatedPrim<Block>;

template <class F> std::string fault_of(int threads, std::size_t shared_bytes, F f, Schedule schedule = Schedule::forward) {
  return depthbench_test::fault_of<Block>(threads, shared_bytes, f, schedule);
}

template <class P> using Team = SimtTeam<double, 2, 1, P>;
constexpr std::size_t team_bytes = 2 * 4 * 128 * sizeof(double);  // four warps

// Three sums in a row over 32 threads.
template <class P> void three_sums(P prim, double* out, bool one_buffer) {
  Team<P> team(64, prim, nullptr);
  for (int i = 0; i < 3; ++i) {
    if (one_buffer) team.parity = 0;
    const double part[2] = {double(prim.rank() + i), 1};
    double sums[1];
    team.sum(part, sums);
    const double total = team.lanes().get(sums, 0), count = team.lanes().get(sums, 1);
    if (team.leader()) out[i] = total / count;
  }
}

}  // namespace

TEST_CASE("emulated block: shuffles, barriers and reductions, in any order of turns", "[emulated]") {
  for (const auto schedule : {Schedule::forward, Schedule::reverse, Schedule::shuffled}) {
    std::vector<int> neighbour(32), first(32);
    double out[3] = {}, largest = 0;
    CHECK(fault_of(32, team_bytes, [&](Prim p) {
            neighbour[std::size_t(p.rank())] = p.shfl_xor(p.rank(), 1);
            first[std::size_t(p.rank())] = p.shfl(p.rank(), 3);
            three_sums(p, out, false);
            p.sync();  // a team of its own: it knows nothing of the buffer that is still read
            Team<Prim> team(64, p, nullptr);
            const double m = team.max(double(p.rank() == 20 ? 99 : p.rank()));
            if (team.leader()) largest = m;
          }, schedule) == "");
    for (int i = 0; i < 32; ++i) {
      CHECK(neighbour[std::size_t(i)] == (i ^ 1));
      CHECK(first[std::size_t(i)] == i / 8 * 8 + 3);
    }
    for (int i = 0; i < 3; ++i) CHECK(out[i] == 15.5 + i);
    CHECK(largest == 99);
  }
}

TEST_CASE("emulated block: a missing barrier in a reduction is found", "[emulated]") {
  for (int drop = 0; drop < 3; ++drop) {
    std::vector<int> counts(32);
    double out[3];
    CHECK_THAT(fault_of(32, team_bytes, [&](Prim p) { three_sums(WithoutOneBarrier(p, drop, counts), out, false); }),
               Catch::Contains("emulated block: shared memory: "));
  }
}

TEST_CASE("emulated block: one buffer where two are needed is found, though every value may be right", "[emulated]") {
  double out[3];
  CHECK_THAT(fault_of(32, team_bytes, [&](Prim p) { three_sums(p, out, true); }), Catch::Contains("with no barrier between"));
}

TEST_CASE("emulated block: faults of shared memory are named", "[emulated]") {
  const auto fault = [](auto f) { return fault_of(16, 16 * sizeof(float), [&](Prim p) { f(p, p.template shared<float>(0)); }); };
  CHECK(fault([](Prim p, auto x) { x[std::size_t(p.rank())] = 1.f; }) == "");
  CHECK(fault([](Prim p, auto x) { x[std::size_t(2 * p.rank())] = 1.f; }) ==  // a wrong stride
        "emulated block: shared memory: thread 8 touches word 16, there are 16");
  CHECK(fault([](Prim p, auto x) { x[std::size_t(p.rank() / 2)] = 1.f; }) ==  // two threads, one place
        "emulated block: shared memory: write after write, threads 0 and 1, word 0, with no barrier between");
  CHECK(fault([](Prim p, auto x) {
          x[std::size_t(p.rank())] = 1.f;
          if (float(x[std::size_t(15 - p.rank())]) > 2) x[0] = 1.f;
        }) == "emulated block: shared memory: thread 0 reads word 15, which nobody wrote");
  CHECK(fault([](Prim p, auto x) {
          x[std::size_t(p.rank())] = 1.f;
          p.sync();
          const float y = x[std::size_t((p.rank() + 1) % 16)];
          x[std::size_t(p.rank())] = y;  // its neighbour has not read it yet
        }) == "emulated block: shared memory: write after read, threads 0 and 1, word 1, with no barrier between");
  CHECK(fault([](Prim p, auto x) {  // a shuffle orders the threads of one warp, and of no other
          if (p.rank() == 0) x[0] = 1.f;
          p.shfl(0, 0);
          if (p.rank() % 8 == 1) p.shfl_xor(float(x[0]), 1); else p.shfl_xor(0.f, 1);
        }) != "");
}

TEST_CASE("emulated block: barriers that not all threads reach are found", "[emulated]") {
  const auto fault = [](auto f) { return fault_of(16, 64, f); };
  CHECK(fault([](Prim p) { if (p.rank() < 8) p.sync(); }) ==
        "emulated block: divergent barrier: 8 threads wait at a barrier of the block, 0 in a shuffle, 8 have left");
  CHECK(fault([](Prim p) { if (p.rank() == 3) p.shfl(1, 0); }) ==
        "emulated block: divergent barrier: 0 threads wait at a barrier of the block, 1 in a shuffle, 15 have left");
  CHECK(fault([](Prim p) { if (p.rank() % 8 == 0) p.sync(); else p.shfl(1, 0); }) ==
        "emulated block: divergent barrier: 2 threads wait at a barrier of the block, 14 in a shuffle, 0 have left");
  const auto two_places = [](Prim p) {  // inside CHECK both would stand in one line
    if (p.rank() < 8) p.sync();
    if (p.rank() >= 8) p.sync();
  };
  CHECK_THAT(fault(two_places), Catch::Contains("threads at different barriers: thread 0 at line"));
  CHECK(fault([](Prim p) { if (p.rank() == 2) throw std::runtime_error("of its own"); }) == "emulated block: thread 2 threw: of its own");
  CHECK_THROWS_WITH(Block(12, 0), "emulated block: 12 threads are not whole warps of 8");
}

TEST_CASE("emulated block: every barrier of the attention kernels is needed, and its absence found", "[emulated]") {
  using R = double;
  const std::size_t n = 70;  // three tiles
  const auto q = random_numbers(n * 12, 1), k = random_numbers(n * 6, 2), v = random_numbers(n * 6, 3), dout = random_numbers(n * 12, 4);
  const RopeTable<R> rope(70, 6, 100);
  std::vector<R> out(n * 12), lse(n * 2), delta(n * 2), dq(n * 12), dk(n * 6), dv(n * 6);
  const auto in = [&](int heads) {
    return BlockAttention<R, 4>{{{1, 70, heads, 1, 6}, rope.cosines(), rope.sines(), q.data(), k.data(), v.data(), nullptr, 0}};
  };
  const auto both = [&](int heads, R* gradient_of_q) {
    return BlockAttentionBackward<R, 4>{in(heads), out.data(), lse.data(), dout.data(), delta.data(), {gradient_of_q, false}, {dk.data(), false}, {dv.data(), false}};
  };
  // Leaves out one barrier after the other; how many there are.
  const auto needed = [&](const auto& body, int first_needed = 0) {
    using Body = std::remove_cvref_t<decltype(body)>;
    int barriers = 0;
    for (int drop = -1; drop < barriers; ++drop) {
      std::vector<int> counts(std::size_t(Body::threads));
      const std::string fault = fault_of(Body::threads, Body::shared_reals * sizeof(R), [&](Prim p) { body(WithoutOneBarrier(p, drop, counts), 0); });
      if (drop < 0) barriers = counts[0];
      CAPTURE(drop, fault);
      CHECK((fault == "") == (drop < first_needed));
    }
    return barriers;
  };
  CHECK(needed(BlockAttentionForward<R, 4>{in(2), out.data(), lse.data()}) == 1 + 2 * 3);  // the queries' tile, three of keys
  // Before its first head a block has nothing to wait for.
  CHECK(needed(BlockAttentionQueries<R, 4>{both(1, dq.data())}, 1) == 2 + 2 * 3 + 2);
  CHECK(needed(BlockAttentionQueries<R, 4>{both(2, nullptr)}, 1) == 2 * (2 + 2 * 3));
  CHECK(needed(BlockAttentionKeys<R, 4>{both(2, dq.data())}) == 1 + 2 * 2 * 3 + 2);
}
