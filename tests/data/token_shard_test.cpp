#include "depthbench/data/token_shard.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;

namespace {

template <class T>
TokenShard shard_of(const std::vector<T>& ids, std::optional<std::int32_t> closing = std::nullopt) {
  const auto owner = std::make_shared<const std::vector<T>>(ids);
  return TokenShard("ids", owner, std::as_bytes(std::span(*owner)), dtype_of<T>, closing);
}
std::vector<std::int32_t> copy(const TokenShard& shard, std::uint64_t begin, std::size_t n,
                               std::int64_t limit) {
  std::vector<std::int32_t> out(n, -7);
  shard.copy(begin, out, limit);
  return out;
}
using ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("token_shard: copies every element type", "[data]") {
  CHECK(copy(shard_of<std::uint8_t>({1, 2, 255}), 1, 2, 256) == ids{2, 255});
  CHECK(copy(shard_of<std::uint16_t>({1, 2, 65535}), 0, 3, 65536) == ids{1, 2, 65535});
  CHECK(copy(shard_of<std::uint32_t>({1, 100000}), 1, 1, 100001) == ids{100000});
  CHECK(copy(shard_of<std::int32_t>({0, 5}), 0, 2, 6) == ids{0, 5});
  CHECK(copy(shard_of<std::int64_t>({0, 5}), 0, 2, 6) == ids{0, 5});
}

TEST_CASE("token_shard: the closing token follows the last stored one", "[data]") {
  const TokenShard shard = shard_of<std::uint8_t>({1, 2}, 256);
  CHECK(shard.size() == 3);
  CHECK(shard.stored() == 2);
  CHECK(copy(shard, 0, 3, 257) == ids{1, 2, 256});
  CHECK(copy(shard, 2, 1, 257) == ids{256});
  CHECK(copy(shard, 0, 2, 257) == ids{1, 2});
  CHECK(copy(shard, 3, 0, 257).empty());
  CHECK(copy(shard_of<std::uint8_t>({}, 256), 0, 1, 257) == ids{256});
}

TEST_CASE("token_shard: an id outside the vocabulary is an error with its position", "[data]") {
  CHECK_THROWS_WITH(copy(shard_of<std::uint16_t>({1, 2, 9, 10}), 1, 3, 9),
                    Contains("ids: token 2 is 9, needs 0 to 8"));
  CHECK_THROWS_WITH(copy(shard_of<std::uint8_t>({8, 9}), 0, 2, 9), Contains("token 1 is 9, needs 0 to 8"));
  CHECK_THROWS_WITH(copy(shard_of<std::int32_t>({1, -2}), 0, 2, 9),
                    Contains("ids: token 1 is -2, needs 0 to 8"));
  CHECK_THROWS_WITH(copy(shard_of<std::uint32_t>({0xffffffffu}), 0, 1, 9), Contains("token 0 is 4294967295"));
  CHECK_THROWS_WITH(copy(shard_of<std::int64_t>({std::int64_t{1} << 32}), 0, 1, 9),
                    Contains("token 0 is 4294967296"));
}

TEST_CASE("token_shard: takes whole elements of whole numbers", "[data]") {
  const auto owner = std::make_shared<const std::string>("abc");
  const auto bytes = std::as_bytes(std::span(*owner));
  CHECK_THROWS_WITH(TokenShard("f", owner, bytes, DType::u16),
                    Contains("f: has 3 bytes of tokens, U16 tokens take a multiple of 2"));
  CHECK_THROWS_WITH(TokenShard("f", owner, bytes, DType::f32),
                    Contains("has elements of type F32, tokens need whole numbers"));
}
