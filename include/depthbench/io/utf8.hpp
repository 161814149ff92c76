// UTF-8 (RFC 3629): one sequence checked, one code point written.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace depthbench {

// Bytes of the sequence that text starts with (1 to 4), or 0 if it is none: cut off, overlong, a surrogate,
// beyond U+10FFFF.
constexpr std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  if (text.empty()) return 0;
  const std::uint32_t a = byte(0);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a < 0xE0) return tail(1) ? 2 : 0;
  if (a >= 0xE0 && a < 0xF0) {
    if (!tail(1) || !tail(2)) return 0;
    const std::uint32_t code = (a & 0xFu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    return code < 0x800 || (code >= 0xD800 && code < 0xE000) ? 0 : 3;
  }
  if (a >= 0xF0 && a < 0xF5) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    const std::uint32_t code =
        (a & 7u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    return code < 0x10000 || code > 0x10FFFF ? 0 : 4;
  }
  return 0;
}

// code: a code point that is no surrogate, at most U+10FFFF
inline void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += char(code);
    return;
  }
  const int tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::uint32_t lead[] = {0, 0xC0, 0xE0, 0xF0};
  out += char(lead[tails] | code >> (6 * tails));
  for (int i = tails - 1; i >= 0; --i) out += char(0x80u | ((code >> (6 * i)) & 0x3Fu));
}

}  // namespace depthbench
