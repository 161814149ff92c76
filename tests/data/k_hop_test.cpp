// k-hop induction against its definition, word by word.
#include "depthbench/data/k_hop.hpp"

#include "tests/catch.hpp"

using namespace depthbench;

namespace {

// The definition: -1 where there is no such place.
int hop(const std::vector<std::int32_t>& x, int i) {
  for (int j = i - 1; j >= 1; --j) if (x[std::size_t(j)] == x[std::size_t(i)]) return j + 1;
  return -1;
}

}  // namespace

TEST_CASE("k_hop: answers are those of the definition, for every number of hops") {
  const KHop task{3, 5, 24};
  std::vector<std::int32_t> tokens(24), targets(24);
  int answered = 0, away = 0;
  for (int k = 0; k <= 5; ++k) for (std::uint64_t sample = 0; sample < 20; ++sample) {
    task.sample(7, sample, tokens, targets, k);
    CHECK(tokens[0] == 3 + k);
    CHECK(targets[0] == ignored_target);
    for (int i = 1; i < 24; ++i) {
      int at = i;
      for (int h = 0; h < k && at >= 0; ++h) at = hop(tokens, at);
      REQUIRE(targets[std::size_t(i)] == (at < 0 ? ignored_target : tokens[std::size_t(at)]));
      answered += at >= 0;
      away += at >= 0 && at != i;
    }
  }
  CHECK(answered > 1000);
  CHECK(away > 500);
}

TEST_CASE("k_hop: a seed repeats, its samples differ, and hops are drawn evenly") {
  const KHop task{4, 3, 16};
  std::vector<std::int32_t> a(16), b(16), targets(16);
  task.sample(1, 5, a, targets);
  task.sample(1, 5, b, targets);
  CHECK(a == b);
  task.sample(1, 6, b, targets);
  CHECK(a != b);
  std::vector<int> count(4);
  for (std::uint64_t i = 0; i < 400; ++i) {
    task.sample(2, i, a, targets);
    ++count[std::size_t(a[0] - 4)];
  }
  for (const int c : count) CHECK(c > 60);
  CHECK(task.vocab_size() == 8);
}

TEST_CASE("k_hop: rooms of the wrong size are refused") {
  std::vector<std::int32_t> tokens(31), targets(32);
  CHECK_THROWS_WITH(KHop{}.sample(0, 0, tokens, targets), Catch::Contains("room for 31 tokens and 32 targets, needs 32 each"));
}
