#include "depthbench/core/dtype.hpp"

#include <cmath>
#include <limits>

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("bfloat16: every value survives the way to float and back", "[core]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    bfloat16 b;
    b.bits = std::uint16_t(bits);
    const float f(b);
    const bfloat16 back(f);
    wrong += std::isnan(f) ? !std::isnan(float(back)) : back.bits != b.bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("bfloat16: rounds to nearest, ties to even", "[core]") {
  const auto bits_of = [](float x) { return bfloat16(x).bits; };
  CHECK(bits_of(1.0f) == 0x3f80);
  CHECK(bits_of(1.0f + 0x1p-8f) == 0x3f80);               // half a step above 1: to the even one, below
  CHECK(bits_of(1.0f + 0x1p-7f + 0x1p-8f) == 0x3f82);     // half a step above an odd one: up
  CHECK(bits_of(1.0f + 0x1.02p-8f) == 0x3f81);            // a little more than half: up
  CHECK(bits_of(-1.0f - 0x1.02p-8f) == 0xbf81);
  CHECK(bits_of(std::numeric_limits<float>::max()) == 0x7f80);  // rounds to infinity
  CHECK(bits_of(std::numeric_limits<float>::infinity()) == 0x7f80);
  CHECK(std::isnan(float(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isnan(
      float(bfloat16(std::bit_cast<float>(0x7f800001u)))));  // a NaN whose upper half is infinity's
  CHECK(double(bfloat16(0.5f)) == 0.5);
}

TEST_CASE("dtype: sizes and names as safetensors spells them", "[core]") {
  CHECK(size_of(DType::f64) == sizeof(double));
  CHECK(size_of(DType::f32) == sizeof(float));
  CHECK(size_of(DType::bf16) == sizeof(bfloat16));
  CHECK(size_of(DType::i64) == 8);
  CHECK(size_of(DType::i32) == 4);
  CHECK(size_of(DType::u32) == 4);
  CHECK(size_of(DType::u16) == 2);
  CHECK(size_of(DType::u8) == 1);
  CHECK(name_of(dtype_of<double>) == "F64");
  CHECK(name_of(dtype_of<float>) == "F32");
  CHECK(name_of(dtype_of<bfloat16>) == "BF16");
  CHECK(name_of(dtype_of<std::int64_t>) == "I64");
  CHECK(name_of(dtype_of<std::int32_t>) == "I32");
  CHECK(name_of(dtype_of<std::uint32_t>) == "U32");
  CHECK(name_of(dtype_of<std::uint16_t>) == "U16");
  CHECK(name_of(dtype_of<std::uint8_t>) == "U8");
}
