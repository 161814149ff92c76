#include "depthbench/data/split.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;

namespace {

using ranges = std::vector<TokenRange>;
ranges documents(std::uint64_t n) {  // of 10 tokens each
  ranges out;
  for (std::uint64_t i = 0; i < n; ++i) out.push_back({10 * i, 10 * i + 10});
  return out;
}
// Both sides together are the documents, each in order.
void check_partition(const Split& split, const ranges& all) {
  ranges merged;
  std::merge(split.train.begin(), split.train.end(), split.validation.begin(), split.validation.end(),
             std::back_inserter(merged), [](auto a, auto b) { return a.begin < b.begin; });
  CHECK(merged == all);
}

}  // namespace

TEST_CASE("split: the last documents", "[data]") {
  const Split split = hold_out_last(documents(5), 2);
  CHECK(split.train == ranges{{0, 10}, {10, 20}, {20, 30}});
  CHECK(split.validation == ranges{{30, 40}, {40, 50}});
  CHECK_THROWS_WITH(hold_out_last(documents(5), 5), Contains("5 of 5 documents are asked for"));
  CHECK_THROWS_AS(hold_out_last(documents(5), 0), config_error);
  CHECK_THROWS_AS(hold_out_last({}, 1), config_error);
}

TEST_CASE("split: the last fraction of the documents", "[data]") {
  CHECK(hold_out_fraction(documents(10), 0.2).validation == ranges{{80, 90}, {90, 100}});
  CHECK(hold_out_fraction(documents(10), 0.01).validation.size() == 1);
  CHECK(hold_out_fraction(documents(10), 0.99).validation.size() == 9);
  check_partition(hold_out_fraction(documents(7), 0.3), documents(7));
}

TEST_CASE("split: the last fraction of the tokens of a single document", "[data]") {
  const ranges one{{5, 105}};
  const Split split = hold_out_fraction(one, 0.1);
  CHECK(split.train == ranges{{5, 95}});
  CHECK(split.validation == ranges{{95, 105}});
  CHECK(hold_out_fraction(one, 0.001).validation == ranges{{103, 105}});
  CHECK(hold_out_fraction(one, 0.999).train == ranges{{5, 7}});
  CHECK_THROWS_WITH(hold_out_fraction(ranges{{0, 3}}, 0.5), Contains("has 3 tokens, needs 2 to train on"));
  CHECK_THROWS_AS(hold_out_fraction({}, 0.5), config_error);
  for (const double bad : {0.0, 1.0, -1.0, double(NAN)})
    CHECK_THROWS_WITH(hold_out_fraction(one, bad), Contains("needs 0 < fraction < 1"));
}

TEST_CASE("split: documents chosen by seed", "[data]") {
  const ranges all = documents(100);
  const Split split = hold_out_random(all, 0.25, 1), same = hold_out_random(all, 0.25, 1),
              other = hold_out_random(all, 0.25, 2);
  CHECK(split.validation.size() == 25);
  check_partition(split, all);
  CHECK(split.validation == same.validation);
  CHECK(split.validation != other.validation);
  CHECK(split.validation != hold_out_fraction(all, 0.25).validation);
  CHECK_THROWS_WITH(hold_out_random(documents(1), 0.5, 1),
                    Contains("has 1 documents to choose from, needs at least 2"));
}
