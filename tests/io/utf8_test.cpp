#include "depthbench/io/utf8.hpp"

#include <string>
#include <string_view>

#include "tests/catch.hpp"

using namespace depthbench;

TEST_CASE("utf8: what is written for a code point is read as one sequence", "[io]") {
  for (std::uint32_t code = 1; code <= 0x10FFFF; code += code < 0x3000 ? 1 : 37) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    append_utf8(text, code);
    if (utf8_sequence(text) != text.size()) FAIL("code point " << code);
    if (text.size() > 1 && utf8_sequence(std::string_view(text).substr(0, text.size() - 1)) != 0)
      FAIL("cut code point " << code);
  }
  std::string euro;
  append_utf8(euro, 0x20AC);
  CHECK(euro == "\xE2\x82\xAC");
}

TEST_CASE("utf8: rejects what is no UTF-8", "[io]") {
  const std::string_view bad[] = {"",
                                  "\x80",
                                  "\xC0\x80",
                                  "\xC1\xBF",
                                  "\xE0\x80\x80",
                                  "\xE0\x9F\xBF",
                                  "\xED\xA0\x80",
                                  "\xED\xBF\xBF",
                                  "\xF0\x80\x80\x80",
                                  "\xF4\x90\x80\x80",
                                  "\xF5\x80\x80\x80",
                                  "\xFF",
                                  "\xC3\x28",
                                  "\xE2\x82",
                                  "\xF0\x9F\x98"};
  for (const auto text : bad) CHECK(utf8_sequence(text) == 0);
  CHECK(utf8_sequence("\xC2\x80") == 2);
  CHECK(utf8_sequence("\xED\x9F\xBF") == 3);
  CHECK(utf8_sequence("\xF4\x8F\xBF\xBF") == 4);
}
