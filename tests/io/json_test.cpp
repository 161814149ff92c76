#include "depthbench/io/json.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/io/fuzz.hpp"

using namespace depthbench;
using namespace depthbench_test;
using Catch::Contains;

namespace {

void skim(std::string_view text) {
  JsonReader json(text, "text");
  json.skip();
  json.finish();
}
std::string text_of(std::string_view json) { return JsonReader(json, "text").string(); }

}  // namespace

TEST_CASE("json: reads values in the order the caller asks for them", "[io]") {
  JsonReader json(
      R"( { "a" : [1, -2, 0] , "b":"x\n\"\\\/\u00e9\ud83d\ude00" ,"c":{ }, "d":-1.5e3, "e":[ ] } )", "text");
  std::vector<std::int64_t> a;
  std::string b, keys;
  double d = 0;
  json.object([&](const std::string& key) {
    keys += key;
    if (key == "a")
      json.array([&] { a.push_back(json.integer()); });
    else if (key == "b")
      b = json.string();
    else if (key == "d")
      d = json.number();
    else
      json.skip();
  });
  json.finish();
  CHECK(keys == "abcde");
  CHECK(a == std::vector<std::int64_t>{1, -2, 0});
  CHECK(b == "x\n\"\\/\xC3\xA9\xF0\x9F\x98\x80");
  CHECK(d == -1500);
}

TEST_CASE("json: accepts what RFC 8259 accepts", "[io]") {
  for (const char* text : {"null", "true", "false", "0", "-0", "1e5", "1E+5", "0.25", "\"\"", "[]", "{}",
                           " [ 1 , [ ] ] ", "{\"a\":{\"a\":1},\"b\":null}", "\"\\u0000\\b\\f\\r\\t\""})
    CHECK_NOTHROW(skim(text));
}

TEST_CASE("json: rejects everything else, with a byte", "[io]") {
  for (const char* text : {"",
                           " ",
                           "nul",
                           "truE",
                           "01",
                           "+1",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "0x1",
                           "NaN",
                           "Infinity",
                           "\"",
                           "\"a",
                           "\"\n\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"\xff\"",
                           "\"\xc0\xaf\"",
                           "[",
                           "[1",
                           "[1,",
                           "[1,]",
                           "[,1]",
                           "[1 2]",
                           "{",
                           "{\"a\"",
                           "{\"a\":",
                           "{\"a\":1",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{1:1}",
                           "{\"a\" 1}",
                           "[] []",
                           "[]x",
                           "'a'",
                           "// c\n1",
                           "\"\\"}) {
    INFO(text);
    CHECK_THROWS_AS(skim(text), format_error);
  }
  CHECK_THROWS_WITH(JsonReader("[1;2]", "f", 8).array([] {}),
                    Contains("f: byte 9: has '1', needs ',' or ']'"));
  CHECK_THROWS_WITH(skim("[1,"), Contains("text: byte 3: the JSON text ends, needs a number"));
  CHECK_THROWS_WITH(skim("\"\x01\""),
                    Contains("has the byte 0x01, needs a string without control characters"));
}

TEST_CASE("json: numbers keep their kind and their range", "[io]") {
  const auto integer = [](std::string_view text) { return JsonReader(text, "text").integer(); };
  CHECK(integer("9223372036854775807") == INT64_MAX);
  CHECK(integer("-9223372036854775808") == INT64_MIN);
  CHECK_THROWS_WITH(integer("9223372036854775808"), Contains("needs a whole number of 64 bits"));
  CHECK_THROWS_AS(integer("1.0"), format_error);
  CHECK_THROWS_AS(integer("1e3"), format_error);
  CHECK_THROWS_AS(integer("\"1\""), format_error);
  CHECK(JsonReader("0.1", "text").number() == 0.1);
  CHECK_THROWS_WITH(JsonReader("1e999", "text").number(), Contains("needs a number that a double can hold"));
}

TEST_CASE("json: nesting ends at 64 levels", "[io]") {
  const auto nested = [](int n) {
    return std::string(std::size_t(n), '[') + std::string(std::size_t(n), ']');
  };
  CHECK_NOTHROW(skim(nested(64)));
  CHECK_THROWS_WITH(skim(nested(65)), Contains("at most 64 levels"));
  CHECK_THROWS_AS(skim(std::string(1'000'000, '[')), format_error);
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"\":";
  CHECK_THROWS_WITH(skim(objects), Contains("at most 64 levels"));
}

TEST_CASE("json: what is quoted reads back", "[io]") {
  for (const std::string& text :
       {std::string("plain"), std::string("a\"b\\c\n\t\x01\0z", 10), std::string("\xC3\xA9\xF0\x9F\x98\x80")})
    CHECK(text_of(json_quote(text)) == text);
  CHECK(json_quote("a\n") == "\"a\\u000a\"");
  CHECK_THROWS_WITH(json_quote("a\xff"), Contains("byte 1 is 0xff, needs UTF-8"));
}

TEST_CASE("json: survives damage", "[io][fuzz]") {
  const std::string valid =
      R"({"t":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"m":"v\u00e9\n","x":[1.5e3,null,true]})";
  CHECK(every_prefix(valid, skim) == valid.size());
  CHECK(random_damage(valid, valid.size(), 5000, 1, skim) > 2500);
}
