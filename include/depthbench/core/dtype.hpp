// Element types as files name them, and bfloat16 as a storage type.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "depthbench/config.hpp"
#include "depthbench/core/error.hpp"

namespace depthbench {

// The upper half of a float. Storage only: arithmetic happens in float.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  DB_FN constexpr explicit bfloat16(float x) {  // round to nearest even; NaN stays NaN
    const std::uint32_t u = __builtin_bit_cast(std::uint32_t, x);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = std::uint16_t(nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  DB_FN constexpr explicit operator float() const { return __builtin_bit_cast(float, std::uint32_t{bits} << 16); }
  DB_FN constexpr explicit operator double() const { return float(*this); }
};

enum class DType { f64, f32, bf16, i64, i32, u32, u16, u8 };

constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::f64: case DType::i64: return 8;
    case DType::f32: case DType::i32: case DType::u32: return 4;
    case DType::bf16: case DType::u16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

// The spelling of safetensors headers.
constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::f64: return "F64";
    case DType::f32: return "F32";
    case DType::bf16: return "BF16";
    case DType::i64: return "I64";
    case DType::i32: return "I32";
    case DType::u32: return "U32";
    case DType::u16: return "U16";
    case DType::u8: return "U8";
  }
  return "?";
}

template <class T> inline constexpr DType dtype_of = [] { static_assert(sizeof(T) == 0, "dtype_of: no such element type"); return DType::u8; }();
template <> inline constexpr DType dtype_of<double> = DType::f64;
template <> inline constexpr DType dtype_of<float> = DType::f32;
template <> inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <> inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <> inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <> inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <> inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <> inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

}  // namespace depthbench
