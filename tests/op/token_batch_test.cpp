#include "depthbench/op/token_batch.hpp"

#include <map>

#include "depthbench/backend/emulated.hpp"
#include "tests/catch.hpp"
#include "tests/tape/fixture.hpp"

using namespace depthbench;
using namespace depthbench_test;

namespace {

// Token -> its positions, read as a kernel does.
template <class Device> std::map<int, std::vector<int>> groups_of(const TokenBatch<Device>& b) {
  std::map<int, std::vector<int>> all;
  for (int g = 0; g < b.groups(); ++g) {
    if (b.start()[g] == b.start()[g + 1]) continue;
    auto& list = all[b.token()[g]];
    CHECK(list.empty());
    for (int i = b.start()[g]; i < b.start()[g + 1]; ++i) list.push_back(b.order()[i]);
  }
  return all;
}
template <class Device> void check_refilled(Device& device) {
  TokenBatch<Device> b(device, 6);
  b.fill(std::vector<std::int32_t>{5, 1, 3, 0, 4, 2}, std::vector<std::int32_t>{1, 2, ignored_target, 4, 5, 6});
  CHECK(groups_of(b).size() == 6);
  const auto* at = b.tokens();
  b.fill(std::vector<std::int32_t>{7, 2, 7, 7, 2, 9});
  CHECK(b.tokens() == at);  // where a captured step reads
  CHECK(groups_of(b) == std::map<int, std::vector<int>>{{2, {1, 4}}, {7, {0, 2, 3}}, {9, {5}}});
  for (int i = 0; i < 6; ++i) CHECK(b.targets()[i] == ignored_target);
  b.fill(std::vector<std::int32_t>(6, 3));
  CHECK(groups_of(b) == std::map<int, std::vector<int>>{{3, {0, 1, 2, 3, 4, 5}}});
}

}  // namespace

TEST_CASE("token batch: groups positions by token, however often it is filled", "[op]") {
  Cpu cpu(1);
  check_refilled(cpu);
  EmulatedDevice<> replays;  // which launches as many groups as there are tokens
  check_refilled(replays);
}

TEST_CASE("token batch: says what does not fit", "[op]") {
  Cpu cpu(1);
  TokenBatch<Cpu> b(cpu, 3);
  const std::vector<std::int32_t> three(3, 1), two(2, 1);
  CHECK(message_of([&] { b.fill(two); }) == "token batch: 2 tokens and 0 targets, needs 3 of each");
  CHECK(message_of([&] { b.fill(three, two); }) == "token batch: 3 tokens and 2 targets, needs 3 of each");
}
