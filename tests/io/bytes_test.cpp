#include "depthbench/io/bytes.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/catch.hpp"

using namespace depthbench;
using Catch::Contains;

TEST_CASE("bytes: load is little-endian at any alignment and never leaves the bytes", "[io]") {
  const auto bytes = as_byte_span("\x01\x02\x03\x04\x05");
  CHECK(load<std::uint32_t>(bytes, 0) == 0x04030201u);
  CHECK(load<std::uint32_t>(bytes, 1) == 0x05040302u);
  CHECK(load<std::uint8_t>(bytes, 4) == 5);
  CHECK_THROWS_WITH(load<std::uint32_t>(bytes, 2), Contains("byte 2: has 5 bytes, needs 4 more"));
  CHECK_THROWS_AS(load<std::uint8_t>(bytes, 5), format_error);
  CHECK_THROWS_AS(load<std::uint8_t>(bytes, SIZE_MAX), format_error);
  CHECK_THROWS_AS(load<std::uint64_t>({}, 0), format_error);
}

TEST_CASE("bytes: the size of a tensor never overflows", "[io]") {
  const auto bytes = [](std::vector<std::int64_t> extents, std::size_t element) {
    return tensor_bytes(extents, element);
  };
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK(bytes({}, 8) == 8u);
  CHECK(bytes({2, 3}, 4) == 24u);
  CHECK(bytes({2, 0, 3}, 4) == 0u);
  CHECK(bytes({huge}, 1) == std::uint64_t(huge));
  CHECK_FALSE(bytes({huge}, 2).has_value());
  CHECK_FALSE(bytes({huge, 4}, 1).has_value());
  CHECK_FALSE(bytes({std::int64_t{1} << 32, std::int64_t{1} << 32}, 1).has_value());  // 2^64 wraps to 0
  CHECK_FALSE(bytes({-1}, 4).has_value());
  CHECK_FALSE(bytes({-1, -1}, 4).has_value());
  CHECK_FALSE(bytes({0, huge, huge}, 1).has_value());  // its rows alone would overflow
  CHECK(bytes({0, huge}, 1) == 0u);
}
