#include "depthbench/data/sampler.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;

namespace {

using ranges = std::vector<TokenRange>;
Corpus counting(int n) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 0);
  return corpus_from_tokens(ids);
}
struct Batch {
  std::vector<std::int32_t> tokens, targets;
  friend bool operator==(const Batch&, const Batch&) = default;
};
Batch batch_of(WindowSampler& sampler, std::uint64_t cursor, std::int64_t size) {
  Batch b;
  b.tokens.resize(std::size_t(size * sampler.window()));
  b.targets.resize(b.tokens.size());
  sampler.batch(cursor, size, b.tokens, b.targets);
  return b;
}

}  // namespace

TEST_CASE("sampler: windows are consecutive tokens, labels the next ones, the last has none", "[data]") {
  const Corpus corpus = counting(23);
  WindowSampler sampler(corpus, ranges{{0, 23}}, 4, 1);
  REQUIRE(sampler.instances() == 5);  // 3 tokens remain
  const Batch b = batch_of(sampler, 0, 5);
  std::set<std::int32_t> starts;
  for (std::size_t w = 0; w < 5; ++w) {
    const std::int32_t first = b.tokens[4 * w];
    starts.insert(first);
    for (int t = 0; t < 4; ++t) CHECK(b.tokens[4 * w + std::size_t(t)] == first + t);
    for (int t = 0; t < 3; ++t) CHECK(b.targets[4 * w + std::size_t(t)] == first + t + 1);
    CHECK(b.targets[4 * w + 3] == ignored_target);
  }
  CHECK(starts == std::set<std::int32_t>{0, 4, 8, 12, 16});  // every window once an epoch
}

TEST_CASE("sampler: windows cross from range to range, and the rest is never seen", "[data]") {
  const Corpus corpus = counting(30);
  WindowSampler sampler(corpus, ranges{{20, 23}, {2, 7}}, 4, 7);
  REQUIRE(sampler.instances() == 2);
  Batch b = batch_of(sampler, 0, 2);
  if (b.tokens[0] != 20) std::rotate(b.tokens.begin(), b.tokens.begin() + 4, b.tokens.end());
  CHECK(b.tokens == std::vector<std::int32_t>{20, 21, 22, 2, 3, 4, 5, 6});
}

TEST_CASE("sampler: a batch depends on the cursor only", "[data]") {
  const Corpus corpus = counting(100);
  const ranges all{{0, 100}};
  WindowSampler straight(corpus, all, 3, 5);  // 33 windows
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 20; ++i) batches.push_back(batch_of(straight, 7 * i, 7));  // over four epochs
  WindowSampler resumed(corpus, all, 3, 5);
  for (const std::uint64_t i : {19, 3, 4, 0, 12}) CHECK(batch_of(resumed, 7 * i, 7) == batches[i]);
  // one at a time is the same as seven at a time
  for (std::uint64_t i = 0; i < 14; ++i) {
    const Batch one = batch_of(resumed, 28 + i, 1);
    const auto& many = batches[4 + i / 7].tokens;
    CHECK(std::equal(one.tokens.begin(), one.tokens.end(), many.begin() + std::ptrdiff_t(3 * (i % 7))));
  }
}

TEST_CASE("sampler: each epoch is a new order of all windows; another seed is another order", "[data]") {
  const Corpus corpus = counting(200);
  WindowSampler sampler(corpus, ranges{{0, 200}}, 2, 3), other(corpus, ranges{{0, 200}}, 2, 4);
  std::vector<std::vector<std::uint64_t>> epochs(3);
  for (std::uint64_t c = 0; c < 300; ++c) epochs[sampler.epoch(c)].push_back(sampler.window_at(c));
  std::vector<std::uint64_t> in_order(100), of_other;
  std::iota(in_order.begin(), in_order.end(), 0u);
  for (std::uint64_t c = 0; c < 100; ++c) of_other.push_back(other.window_at(c));
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);
  CHECK(epochs[0] != in_order);
  CHECK(epochs[0] != of_other);
  for (auto& e : epochs) {
    std::sort(e.begin(), e.end());
    CHECK(e == in_order);
  }
}

TEST_CASE("sampler: says what it had and what it needed", "[data]") {
  const Corpus corpus = counting(10);
  const ranges all{{0, 10}};
  CHECK_THROWS_WITH(WindowSampler(corpus, all, 11, 1),
                    Contains("has 10 tokens to train on, needs at least 11"));
  CHECK_THROWS_WITH(WindowSampler(corpus, ranges{}, 2, 1), Contains("has 0 tokens to train on"));
  CHECK_THROWS_WITH(WindowSampler(corpus, all, 1, 1), Contains("a window has 1 tokens, needs at least 2"));
  CHECK_THROWS_AS(WindowSampler(corpus, all, -5, 1), config_error);
  WindowSampler sampler(corpus, all, 4, 1);
  std::vector<std::int32_t> eight(8), nine(9);
  CHECK_THROWS_WITH(sampler.batch(0, 1, eight, eight), Contains("have 8 and 8 elements, need 1 x 4 each"));
  CHECK_THROWS_AS(sampler.batch(0, 2, eight, nine), shape_error);
  CHECK_THROWS_AS(sampler.batch(0, 2, nine, nine), shape_error);
  CHECK_THROWS_AS(sampler.batch(0, 0, {}, {}), shape_error);
}
