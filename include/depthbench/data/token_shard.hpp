// One stored run of tokens: elements of a fixed integer type somewhere in memory, usually a mapped file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "depthbench/core/dtype.hpp"
#include "depthbench/core/error.hpp"

namespace depthbench {

// closing: a token that is not stored but follows the last one (the end of a text)
//   throws dtype_error if dtype is no integer, format_error if the bytes are no whole number of elements
class TokenShard {
 public:
  TokenShard(std::string name, std::shared_ptr<const void> owner, std::span<const std::byte> bytes,
             DType dtype, std::optional<std::int32_t> closing = std::nullopt)
      : name_(std::move(name)), owner_(std::move(owner)), bytes_(bytes), dtype_(dtype), closing_(closing) {
    if (dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16)
      fail<dtype_error>("{}: has elements of type {}, tokens need whole numbers", name_, name_of(dtype));
    if (bytes.size() % size_of(dtype) != 0)
      fail<format_error>("{}: has {} bytes of tokens, {} tokens take a multiple of {}", name_, bytes.size(),
                         name_of(dtype), size_of(dtype));
  }

  const std::string& name() const { return name_; }  // the file's, as errors call it
  std::uint64_t stored() const { return bytes_.size() / size_of(dtype_); }
  std::uint64_t size() const { return stored() + (closing_ ? 1 : 0); }

  // Tokens begin, begin + 1, ... fill out; the caller keeps within size().
  //   throws format_error with the position of the first token outside [0, limit): checked on every copy,
  //   since a mapped file may change after it was opened
  void copy(std::uint64_t begin, std::span<std::int32_t> out, std::int64_t limit) const {
    if (!out.empty() && closing_ && begin + out.size() == size()) {
      out.back() = *closing_;
      out = out.first(out.size() - 1);
    }
    switch (dtype_) {
      case DType::u8:
        return copy_as<std::uint8_t>(begin, out, limit);
      case DType::u16:
        return copy_as<std::uint16_t>(begin, out, limit);
      case DType::u32:
        return copy_as<std::uint32_t>(begin, out, limit);
      case DType::i32:
        return copy_as<std::int32_t>(begin, out, limit);
      default:
        return copy_as<std::int64_t>(begin, out, limit);
    }
  }

 private:
  template <class T>
  void copy_as(std::uint64_t begin, std::span<std::int32_t> out, std::int64_t limit) const {
    const std::byte* from = bytes_.data() + begin * sizeof(T);
    const auto at = [&](std::size_t i) {
      T value;
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      return std::int64_t{value};
    };
    bool outside = false;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int64_t id = at(i);
      outside |= (id < 0) | (id >= limit);
      out[i] = std::int32_t(id);
    }
    for (std::size_t i = 0; outside && i < out.size(); ++i)
      if (at(i) < 0 || at(i) >= limit)
        fail<format_error>("{}: token {} is {}, needs 0 to {}", name_, begin + i, at(i), limit - 1);
    if (outside) fail<format_error>("{}: changed while it was read", name_);
  }

  std::string name_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  DType dtype_;
  std::optional<std::int32_t> closing_;
};

}  // namespace depthbench
