// Numbers out of untrusted bytes: little-endian, at any alignment, never outside the bytes.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "depthbench/core/error.hpp"

namespace depthbench {

static_assert(std::endian::native == std::endian::little,
              "depthbench: its file formats are little-endian and read in place; this machine is big-endian");

// The T that starts at byte `offset`.
//   throws format_error if it does not lie inside `bytes`
template <class T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    fail<format_error>("byte {}: has {} bytes, needs {} more", offset, bytes.size(), sizeof(T));
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// The same bytes as characters.
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Bytes that a tensor of these extents and this element size takes; empty if an extent is negative or the
// count of elements leaves int64. Zero extents count as one in that test, so that a product of any of the
// extents is safe as well.
inline std::optional<std::uint64_t> tensor_bytes(std::span<const std::int64_t> extents, std::size_t element) {
  std::uint64_t product = element;
  bool empty = false;
  for (const std::int64_t e : extents) {
    if (e < 0) return std::nullopt;
    if (e == 0)
      empty = true;
    else if (product > std::uint64_t{INT64_MAX} / std::uint64_t(e))
      return std::nullopt;
    else
      product *= std::uint64_t(e);
  }
  return empty ? 0 : product;
}

}  // namespace depthbench
