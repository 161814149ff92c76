// Two bfloat16 in a word of 32 bits, as tensor cores take them: the first in the lower half.
#pragma once
#include <cstdint>

#include "depthbench/core/dtype.hpp"

namespace depthbench {

DB_FN std::uint32_t bf16_pair(float low, float high) {  // both rounded to nearest even
#if DB_DEVICE_PASS
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
#else
  return bfloat16(low).bits | std::uint32_t{bfloat16(high).bits} << 16;
#endif
}
DB_FN float low_of(std::uint32_t pair) { return __builtin_bit_cast(float, pair << 16); }
DB_FN float high_of(std::uint32_t pair) { return __builtin_bit_cast(float, pair & 0xffff0000u); }

// The lower halves of two words; the upper ones.
DB_FN std::uint32_t lows(std::uint32_t a, std::uint32_t b) { return (a & 0xffffu) | b << 16; }
DB_FN std::uint32_t highs(std::uint32_t a, std::uint32_t b) { return a >> 16 | (b & 0xffff0000u); }

}  // namespace depthbench
